// Polling: reads data at once, then at an interval, and at once again when the tab becomes visible.
// The last data stays on the screen while the server is unreachable.
import { untrack } from 'svelte';
import { session } from './session.svelte';

/** The state of polled data, of any type. */
export interface Reading {
  readonly data: unknown;
  readonly error: unknown;
  readonly loading: boolean;
  refresh(): Promise<void>;
}

export class Live<T> implements Reading {
  data: T | undefined = $state.raw();
  error: unknown = $state.raw();
  /** The current query has no answer yet; `data` is the answer to the previous query. */
  loading = $state(true);
  private read: (signal: AbortSignal) => Promise<T>;
  private pace: (data: T | undefined) => number | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | undefined;
  /** Counts reads and stops, so that an outdated read has no effect. */
  private turn = 0;

  constructor(read: (signal: AbortSignal) => Promise<T>, pace: (data: T | undefined) => number | undefined) {
    this.read = read;
    this.pace = pace;
  }

  /** Starts over, for another query. */
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
      session.handleError(error);
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

  /** A hidden tab does not poll; it reads when it becomes visible again. */
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
 * Polls while the component is mounted, and starts over when the value of `key` changes. `pace`
 * returns the milliseconds until the next read; `undefined` means that the data no longer changes.
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
