// Toasts and dialogs: control characters are shown, and the topmost dialog has the toast.
import { render } from 'svelte/server';
import { afterEach, expect, test, vi } from 'vitest';
import { feedback } from '../src/lib/ui/feedback.svelte';
import Dialog from '../src/lib/ui/Dialog.svelte';
import Toast from '../src/lib/ui/Toast.svelte';

vi.useFakeTimers();
afterEach(() => {
  feedback.dismiss();
  feedback.dialogs = 0;
});

/** Which of the page and two windows says it. */
const speaking = () => [0, 1, 2].filter((level) => render(Toast, { props: { level } }).body.includes('Key copied'));

test('only the topmost toast shows the message', () => {
  feedback.toast('key copied');
  expect(speaking()).toEqual([0]);
  feedback.dialogs = 1;
  expect(speaking()).toEqual([1]);
  feedback.dialogs = 2;
  expect(speaking()).toEqual([2]);
});

test('a dialog has a toast', () => {
  feedback.toast('key copied');
  feedback.dialogs = 1;
  expect(render(Dialog, { props: { title: 'Keys', close: () => undefined, children: (() => undefined) as never } }).body).toContain('Key copied');
});

test('a dialog shows bidirectional controls', async () => {
  const answer = feedback.confirm({ title: 'Release the lock a\u202eb?', text: 'of \u2067c', action: 'Release' });
  expect([feedback.question?.title, feedback.question?.text]).toEqual(['Release the lock a⟨U+202E⟩b?', 'of ⟨U+2067⟩c']);
  feedback.question?.answer({ yes: false, option: false });
  expect((await answer).yes).toBe(false);
  feedback.toast('a\u202eb is deleted');
  expect(feedback.message?.text).toBe('A⟨U+202E⟩b is deleted');
});
