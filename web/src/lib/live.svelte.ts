// Something that is read again and again while somebody looks: at once, then every so often, at once again when the tab comes back.
// What was read stays on the screen while the server is away.
import { untrack } from 'svelte';
import { session } from './session.svelte';

/** What a reading shows of itself, whatever it reads. */
export interface Reading {
  readonly data: unknown;
  readonly error: unknown;
  readonly loading: boolean;
  refresh(): Promise<void>;
}

export class Live<T> implements Reading {
  data: T | undefined = $state.raw();
  error: unknown = $state.raw();
  /** Nothing was read yet for what is asked now; what is there is the answer to the question before. */
  loading = $state(true);
  private read: (signal: AbortSignal) => Promise<T>;
  private pace: (data: T | undefined) => number | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | undefined;
  /** Counts the readings and the stops, so that one that was overtaken does nothing more. */
  private turn = 0;

  constructor(read: (signal: AbortSignal) => Promise<T>, pace: (data: T | undefined) => number | undefined) {
    this.read = read;
    this.pace = pace;
  }

  /** Begins anew, for another question. */
  restart(): void {
    this.error = undefined;
    this.loading = true;
    void this.refresh();
  }

  /** Reads now. */
  async refresh(): Promise<void> {
    this.stop();
    const running = new AbortController();
    this.running = running;
    try {
      const data = await this.read(running.signal);
      if (this.running !== running) return;
      this.data = data;
      this.error = undefined;
    } catch (error) {
      if (this.running !== running) return;
      this.error = error;
      session.noticed(error);
    }
    this.loading = false;
    this.running = undefined;
    const pause = this.pace(this.data);
    if (pause !== undefined) {
      this.timer = setTimeout(() => void this.again(), pause);
    }
  }

  stop(): void {
    this.turn += 1;
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = undefined;
  }

  /** A tab that nobody sees asks nothing; it asks when it is seen again. */
  private async again(): Promise<void> {
    const turn = this.turn;
    if (document.hidden) {
      await new Promise((seen) => document.addEventListener('visibilitychange', seen, { once: true }));
    }
    if (turn === this.turn) {
      await this.refresh();
    }
  }
}

/**
 * Reads while the component lives, and anew whenever what `key` reads changes. `pace` says how many milliseconds to wait
 * before the next time; nothing means that it will not change any more.
 */
export function live<T>(
  key: () => unknown,
  read: (signal: AbortSignal) => Promise<T>,
  pace: (data: T | undefined) => number | undefined = () => 3_000,
): Live<T> {
  const reading = new Live(read, pace);
  $effect(() => {
    key();
    untrack(() => reading.restart());
    return () => reading.stop();
  });
  return reading;
}
