// A request that the server wants confirmed: asks the user, then sends it again.
import { ApiError } from '../api/error';
import { capitalize } from '../format';
import { feedback } from './feedback.svelte';

/** The answer to the request; `undefined` where the user cancelled. */
export async function withConfirmation<T>(title: string, action: string, send: (confirm: boolean) => Promise<T>): Promise<T | undefined> {
  try {
    return await send(false);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.confirm) throw error;
    const text = [error.message, error.details].filter(Boolean).map(capitalize).join('. ');
    const answer = await feedback.confirm({ title, text, action, danger: true });
    return answer.yes ? send(true) : undefined;
  }
}
