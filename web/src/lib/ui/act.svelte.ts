// Doing something once at a time: a button that was pressed is out of service until its call came back, and what went wrong is said.
import { words } from '../api/error';
import { session } from '../session.svelte';
import { talk } from './ask.svelte';

export class Act {
  busy = $state(false);
  error: unknown = $state.raw();

  /** Runs it; the error is kept for a form to show. */
  async keep(what: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.error = undefined;
    try {
      await what();
    } catch (error) {
      this.error = error;
      session.noticed(error);
    } finally {
      this.busy = false;
    }
  }

  /** Runs it; the error is said at the edge of the page. */
  async tell(what: () => Promise<void>): Promise<void> {
    await this.keep(what);
    if (this.error !== undefined) {
      const { title, details } = words(this.error);
      talk.say(details ? `${title}: ${details}` : title, true);
    }
  }
}
