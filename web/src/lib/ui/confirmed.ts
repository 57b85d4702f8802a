// A request that the server wants to have confirmed: the person is asked, and it is sent once more.
import { ApiError } from '../api/error';
import { capital } from '../show';
import { talk } from './ask.svelte';

/** The answer to the request; `undefined` where the person left it. */
export async function confirmed<T>(title: string, act: string, send: (confirm: boolean) => Promise<T>): Promise<T | undefined> {
  try {
    return await send(false);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.confirm) throw error;
    const text = [error.message, error.details].filter(Boolean).map(capital).join('. ');
    const answer = await talk.ask({ title, text, act, danger: true });
    return answer.yes ? send(true) : undefined;
  }
}
