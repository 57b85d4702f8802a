// The run form: empty fields are left out, and an earlier execution fills it.
import { expect, test } from 'vitest';
import { blank, fromExecution, toRequest } from '../src/pages/run-form';
import type { Execution } from '../src/lib/api/shapes';

test('an empty form sends only its command', () => {
  expect(toRequest({ ...blank(), command: 'true' })).toEqual({ command: 'true' });
});

test('every filled field is sent', () => {
  const request = toRequest({
    command: ' make \n all ',
    image: 'alpine',
    lock: ' production ',
    waitForLock: true,
    timeout: 60,
    env: [{ name: 'A', value: ' kept ' }, { name: '', value: 'dropped' }],
    secrets: ['token'],
    gitRepo: 'https://example.com/r.git',
    gitRef: 'main',
    gitPath: 'dir',
    gitToken: 'token',
    queue: 'big',
    priority: '1',
    retries: 2,
    labels: [{ name: 'team', value: 'web' }],
  });
  expect(request).toEqual({
    command: ' make \n all ',
    image: 'alpine',
    lock: 'production',
    lock_wait: 86_400,
    timeout: 60,
    env: { A: ' kept ' },
    secrets: ['token'],
    git_repo: 'https://example.com/r.git',
    git_ref: 'main',
    git_path: 'dir',
    git_token: 'token',
    queue: 'big',
    priority: 1,
    retries: 2,
    labels: { team: 'web' },
  });
});

test('a wait without a lock is not sent', () => {
  expect(toRequest({ ...blank(), command: 'true', waitForLock: true })).toEqual({ command: 'true' });
});

test('arguments become an equivalent shell command', () => {
  const execution = { command: 'printf', args: ['%s\n', "it's", 'a b'], image_id: 'local', queue: 'default', labels: { a: 'b' } } as unknown as Execution;
  const form = fromExecution(execution);
  expect(form.command).toBe(`printf '%s\n' 'it'\\''s' 'a b'`);
  expect([form.image, form.queue, form.labels]).toEqual(['local', '', [{ name: 'a', value: 'b' }]]);
});
