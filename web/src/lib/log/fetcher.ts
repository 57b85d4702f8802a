// Brings the lines that somebody looks at, page by page, one request at a time: the newest wish counts, and a page takes fewer lines where
// lines are long. A failed request is tried again, ever more slowly, and said so.
import { backoffMs } from './backoff';
import type { Lines } from './lines';
import { LogError, type LogSource } from './source';

const MOST_LINES = 256;
const FEWEST_LINES = 8;
const FAIR_BYTES = 512 * 1024;
/** How far back a filtered page reaches at first. */
const FIRST_REACH = 2_000;

/** Lines that are wanted, from `from` to before `to`. */
export interface Wish {
  from: number;
  to: number;
  /** Looking upwards: what lies nearest to `to` comes first. */
  upwards: boolean;
}

export interface Fetched {
  /** New lines are here, or a request failed or works again. */
  onChange(): void;
}

export class Fetcher {
  /** Why nothing comes at the moment. */
  problem: LogError | undefined;
  private wish: Wish | undefined;
  private busy = false;
  private failures = 0;
  private limit = 64;
  private reach = FIRST_REACH;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = new AbortController();

  constructor(
    private readonly source: LogSource,
    private readonly lines: Lines,
    private readonly told: Fetched,
  ) {}

  /** Wants these lines; earlier wishes are forgotten. */
  want(wish: Wish): void {
    this.wish = wish;
    if (!this.busy && this.timer === undefined) void this.run();
  }

  /** Tries again now. */
  retry(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.busy) void this.run();
  }

  stop(): void {
    this.wish = undefined;
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private async run(): Promise<void> {
    this.busy = true;
    try {
      for (let next = this.next(); next; next = this.next()) {
        const page = await this.source.page(next.from, next.limit, this.lines.stream, this.abort.signal);
        if (this.abort.signal.aborted) return;
        // A log that ends before the wish does has nothing more to give.
        const to = Math.max(page.nextLine, page.records.length === 0 ? next.to : next.from + 1);
        this.lines.put(page.records, next.from, to);
        this.adapt(page.records.length, page.bytes);
        if (this.wish) this.lines.evict((this.wish.from + this.wish.to) / 2);
        this.failures = 0;
        this.problem = undefined;
        this.told.onChange();
      }
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.failed(error instanceof LogError ? error : new LogError('cannot read the log', 0));
    } finally {
      this.busy = false;
    }
  }

  private failed(problem: LogError): void {
    this.problem = problem;
    this.failures += 1;
    if (problem.isRetryable) {
      const wait = problem.retryAfter === undefined ? backoffMs(this.failures) : problem.retryAfter * 1_000;
      this.timer = setTimeout(() => this.retry(), wait);
    }
    this.told.onChange();
  }

  /** The next page to ask for. */
  private next(): { from: number; to: number; limit: number } | undefined {
    const wish = this.wish;
    if (!wish) return undefined;
    const hole = wish.upwards ? this.lastHole(wish) : this.firstHole(wish);
    if (!hole) return undefined;
    if (this.lines.stream !== undefined) {
      const from = wish.upwards ? Math.max(hole.from, hole.to - this.reach) : hole.from;
      return { from, to: hole.to, limit: this.limit };
    }
    const before = this.lines.before(hole.from, 1);
    // A small hole is made larger towards where there is nothing either, so that scrolling does not ask for single lines.
    const lowest = before?.kind === 'unknown' ? before.from : hole.from;
    const from = wish.upwards ? Math.max(lowest, hole.to - this.limit) : hole.from;
    return { from, to: Math.min(hole.to, from + this.limit), limit: Math.min(this.limit, Math.max(hole.to - from, this.limit)) };
  }

  private firstHole(wish: Wish): { from: number; to: number } | undefined {
    for (let line = wish.from; line < wish.to;) {
      const place = this.lines.at(line, wish.to);
      if (!place) return undefined;
      if (place.kind === 'unknown') return place;
      line = place.entry.record.line + 1;
    }
    return undefined;
  }

  private lastHole(wish: Wish): { from: number; to: number } | undefined {
    for (let line = wish.to; line > wish.from;) {
      const place = this.lines.before(line, wish.from);
      if (!place) return undefined;
      if (place.kind === 'unknown') return place;
      line = place.entry.record.line;
    }
    return undefined;
  }

  private adapt(records: number, bytes: number): void {
    if (records > 0) this.limit = Math.min(MOST_LINES, Math.max(FEWEST_LINES, Math.floor(FAIR_BYTES / (bytes / records))));
    this.reach = records < 16 ? Math.min(this.reach * 4, 10_000_000) : Math.max(FIRST_REACH, Math.floor(this.reach / 4));
  }
}
