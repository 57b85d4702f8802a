// One call at a time: its button is disabled until the call returns, and its error is shown.
import { errorText } from '../api/error';
import { session } from '../session.svelte';
import { feedback } from './feedback.svelte';

export class Call {
  busy = $state(false);
  error: unknown = $state.raw();

  /** Runs the call; a form shows `error`. */
  async run(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.error = undefined;
    try {
      await work();
    } catch (error) {
      this.error = error;
      session.handleError(error);
    } finally {
      this.busy = false;
    }
  }

  /** Runs the call; a toast shows the error. */
  async runOrToast(work: () => Promise<void>): Promise<void> {
    await this.run(work);
    if (this.error !== undefined) {
      const { title, details } = errorText(this.error);
      feedback.toast(details ? `${title}: ${details}` : title, true);
    }
  }
}
