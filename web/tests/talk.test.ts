// What the page says and asks: as it is, and in the foremost window, for behind it nothing is heard.
import { render } from 'svelte/server';
import { afterEach, expect, test, vi } from 'vitest';
import { talk } from '../src/lib/ui/ask.svelte';
import Dialog from '../src/lib/ui/Dialog.svelte';
import Said from '../src/lib/ui/Said.svelte';

vi.useFakeTimers();
afterEach(() => {
  talk.hush();
  talk.windows = 0;
});

/** Which of the page and two windows says it. */
const speaking = () => [0, 1, 2].filter((level) => render(Said, { props: { level } }).body.includes('Key copied'));

test('one place says it, the one in front', () => {
  talk.say('key copied');
  expect(speaking()).toEqual([0]);
  talk.windows = 1;
  expect(speaking()).toEqual([1]);
  talk.windows = 2;
  expect(speaking()).toEqual([2]);
});

test('a window has such a place', () => {
  talk.say('key copied');
  talk.windows = 1;
  expect(render(Dialog, { props: { title: 'Keys', close: () => undefined, children: (() => undefined) as never } }).body).toContain('Key copied');
});

test('a question names what it is about as it is', async () => {
  const answer = talk.ask({ title: 'Release the lock a\u202eb?', text: 'of \u2067c', act: 'Release' });
  expect([talk.question?.title, talk.question?.text]).toEqual(['Release the lock a⟨U+202E⟩b?', 'of ⟨U+2067⟩c']);
  talk.question?.answer({ yes: false, option: false });
  expect((await answer).yes).toBe(false);
  talk.say('a\u202eb is deleted');
  expect(talk.said?.text).toBe('A⟨U+202E⟩b is deleted');
});
