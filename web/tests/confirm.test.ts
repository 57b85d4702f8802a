// Requests that the server wants confirmed open a dialog; others do not.
import { expect, test, vi } from 'vitest';
import { ApiError, refusal } from '../src/lib/api/error';
import { feedback } from '../src/lib/ui/feedback.svelte';
import { withConfirmation } from '../src/lib/ui/confirm';

const asks = () => refusal(Response.json({ error: 'it would run no more commands', code: 'CONFLICT', details: 'first do this', confirm: true }, { status: 409 }));

/** Sends what is refused until it is confirmed, and answers the question. */
async function invite(yes: boolean) {
  const error = await asks();
  const send = vi.fn(async (confirm: boolean) => {
    if (!confirm) throw error;
    return 'token';
  });
  const made = withConfirmation('Sure?', 'Do it', send);
  await vi.waitFor(() => expect(feedback.question).toBeDefined());
  const text = feedback.question?.text;
  feedback.question?.answer({ yes, option: false });
  return { made: await made, text, sent: send.mock.calls.map(([confirm]) => confirm) };
}

test('after a yes the request is sent confirmed', async () => {
  const { made, text, sent } = await invite(true);
  expect([made, sent]).toEqual(['token', [false, true]]);
  expect(text).toBe('It would run no more commands. First do this');
});

test('after a no nothing is sent', async () => {
  const { made, sent } = await invite(false);
  expect([made, sent]).toEqual([undefined, [false]]);
});

test('another error does not ask', async () => {
  const conflict = new ApiError(409, 'CONFLICT', 'there is such a user');
  await expect(withConfirmation('Sure?', 'Do it', () => Promise.reject(conflict))).rejects.toBe(conflict);
  expect(feedback.question).toBeUndefined();
});
