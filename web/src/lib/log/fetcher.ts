// Fetches the visible lines page by page, one request at a time: the newest request wins, and a
// page has fewer lines where lines are long. A failed request is retried with backoff, and its
// error is shown.
import { backoffMs } from './backoff';
import type { Lines } from './lines';
import { LogError, type LogSource } from './source';

const MAX_LINES = 256;
const MIN_LINES = 8;
const FAIR_BYTES = 512 * 1024;
/** How far back the first filtered page reaches. */
const FIRST_REACH = 2_000;

/** Lines that are wanted, from `from` to before `to`. */
export interface LineRequest {
  from: number;
  to: number;
  /** Scrolling up: the lines nearest to `to` come first. */
  upwards: boolean;
}

export interface FetchListener {
  /** New lines arrived, or a request failed or succeeded again. */
  onChange(): void;
}

export class Fetcher {
  /** The current error. */
  problem: LogError | undefined;
  private request: LineRequest | undefined;
  private busy = false;
  private failures = 0;
  private limit = 64;
  private reach = FIRST_REACH;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = new AbortController();

  constructor(
    private readonly source: LogSource,
    private readonly lines: Lines,
    private readonly listener: FetchListener,
  ) {}

  /** Requests these lines; earlier requests are dropped. */
  want(request: LineRequest): void {
    this.request = request;
    if (!this.busy && this.timer === undefined) void this.run();
  }

  /** Tries again now. */
  retry(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (!this.busy) void this.run();
  }

  stop(): void {
    this.request = undefined;
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private async run(): Promise<void> {
    this.busy = true;
    try {
      for (let next = this.next(); next; next = this.next()) {
        const page = await this.source.page(next.from, next.limit, this.lines.stream, this.abort.signal);
        if (this.abort.signal.aborted) return;
        // The log ends before the requested range does.
        const to = Math.max(page.nextLine, page.records.length === 0 ? next.to : next.from + 1);
        this.lines.put(page.records, next.from, to);
        this.adapt(page.records.length, page.bytes);
        if (this.request) this.lines.evict((this.request.from + this.request.to) / 2);
        this.failures = 0;
        this.problem = undefined;
        this.listener.onChange();
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
    this.listener.onChange();
  }

  /** The next page to ask for. */
  private next(): { from: number; to: number; limit: number } | undefined {
    const request = this.request;
    if (!request) return undefined;
    const hole = request.upwards ? this.lastHole(request) : this.firstHole(request);
    if (!hole) return undefined;
    if (this.lines.stream !== undefined) {
      const from = request.upwards ? Math.max(hole.from, hole.to - this.reach) : hole.from;
      return { from, to: hole.to, limit: this.limit };
    }
    const before = this.lines.before(hole.from, 1);
    // A small hole is made larger towards where there is nothing either, so that scrolling does not ask for single lines.
    const lowest = before?.kind === 'unknown' ? before.from : hole.from;
    const from = request.upwards ? Math.max(lowest, hole.to - this.limit) : hole.from;
    return { from, to: Math.min(hole.to, from + this.limit), limit: Math.min(this.limit, Math.max(hole.to - from, this.limit)) };
  }

  private firstHole(request: LineRequest): { from: number; to: number } | undefined {
    for (let line = request.from; line < request.to;) {
      const place = this.lines.at(line, request.to);
      if (!place) return undefined;
      if (place.kind === 'unknown') return place;
      line = place.entry.record.line + 1;
    }
    return undefined;
  }

  private lastHole(request: LineRequest): { from: number; to: number } | undefined {
    for (let line = request.to; line > request.from;) {
      const place = this.lines.before(line, request.from);
      if (!place) return undefined;
      if (place.kind === 'unknown') return place;
      line = place.entry.record.line;
    }
    return undefined;
  }

  private adapt(records: number, bytes: number): void {
    if (records > 0) this.limit = Math.min(MAX_LINES, Math.max(MIN_LINES, Math.floor(FAIR_BYTES / (bytes / records))));
    this.reach = records < 16 ? Math.min(this.reach * 4, 10_000_000) : Math.max(FIRST_REACH, Math.floor(this.reach / 4));
  }
}
