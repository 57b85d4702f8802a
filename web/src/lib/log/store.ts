// One log as the viewer sees it: how long it is, which part of it is in memory, what is folded, filtered, cleared or held back. Takes live
// output and answers with rows; what is missing it has fetched. Tells its one listener when something changed and draws nothing itself.
import type { Batch } from './batch';
import { Fetcher, type LineRequest } from './fetcher';
import { NO_FOLDS, type Folds } from './folds';
import { Groups, type Group, type Outcome } from './groups';
import { Lines } from './lines';
import { MARKER_PATTERN, markerOf } from './marker';
import type { LogRecord, Stream } from './record';
import { Rows } from './rows';
import type { LogError, LogHead, LogSource } from './source';

/**
 * How many records that arrive between two frames are decoded; the others are fetched when the user
 * scrolls to them.
 */
const MAX_AT_ONCE = 2_000;
/** How often, at most, the server is asked for marks in what was not decoded. */
const CATCH_UP_MS = 3_000;
const GROUP_PAGE = 1_000;
const GROUP_PAGES = 20;

export class LogStore {
  /** The line after the last one there is. */
  nextLine = 1;
  readonly groups = new Groups();
  private lines = new Lines();
  private fetcher: Fetcher;
  private folds: Folds = NO_FOLDS;
  private outcome: Outcome = { live: true, failed: false };
  private frozenAt: number | undefined;
  private clearedTo = 1;
  /** Live output that was not drawn yet. */
  private pending: Batch[] = [];
  /** The first line of it. */
  private taken: number | undefined;
  /** From here on marks of groups were not looked for. */
  private unmarkedFrom: number | undefined;
  private isCatchingUp = false;
  /** The visible lines. */
  private around = 1;
  private readonly abort = new AbortController();

  constructor(
    private readonly source: LogSource,
    private readonly onChange: () => void,
  ) {
    this.fetcher = new Fetcher(source, this.lines, { onChange: () => this.changed() });
  }

  /** Asks where the log stands. */
  async open(): Promise<LogHead> {
    const head = await this.source.head(this.abort.signal);
    this.grow(head.nextLine);
    return head;
  }

  close(): void {
    this.abort.abort();
    this.fetcher.stop();
  }

  get stream(): Stream | undefined {
    return this.lines.stream;
  }

  get problem(): LogError | undefined {
    return this.fetcher.problem;
  }

  /** How many records are in memory. */
  get kept(): number {
    this.drain();
    return this.lines.size.records;
  }

  get isPaused(): boolean {
    return this.frozenAt !== undefined;
  }

  get isCleared(): boolean {
    return this.clearedTo > 1;
  }

  /** The line after the last one that is shown. */
  get end(): number {
    return Math.min(this.frozenAt ?? this.nextLine, this.nextLine);
  }

  rows(): Rows {
    this.drain();
    return new Rows(this.lines, this.folds, Math.min(this.clearedTo, this.end), this.end);
  }

  /** The records of a row, joined. */
  texts(record: LogRecord): string[] {
    return this.lines.row(record);
  }

  record(line: number): LogRecord | undefined {
    return this.lines.entry(line)?.record;
  }

  want(request: LineRequest): void {
    this.around = (request.from + request.to) / 2;
    this.fetcher.want({ ...request, to: Math.min(request.to, this.nextLine) });
  }

  retry(): void {
    this.fetcher.retry();
  }

  /** The log is at least this long. */
  grow(nextLine: number): void {
    if (nextLine <= this.nextLine) return;
    this.nextLine = nextLine;
    this.changed();
  }

  /** Takes live output. Lines that it skips are fetched when they are looked at. */
  append(batch: Batch): void {
    if (batch.nextLine <= this.nextLine) return;
    // A page in the background draws nothing for hours; what it will not show then need not wait here.
    this.pending = this.pending.filter((waiting) => waiting.nextLine > batch.nextLine - MAX_AT_ONCE);
    this.pending.push(batch);
    this.taken ??= this.nextLine;
    this.nextLine = batch.nextLine;
    this.changed();
  }

  /** The server's log is shorter than what was shown: it lost its end. */
  rewind(nextLine: number): void {
    this.drain();
    this.lines.truncate(nextLine);
    this.groups.truncate(nextLine);
    this.nextLine = nextLine;
    this.clearedTo = Math.min(this.clearedTo, nextLine);
    this.changed();
  }

  /** Shows one stream only, or all. */
  filter(stream: Stream | undefined): void {
    if (stream === this.stream) return;
    this.drain();
    this.fetcher.stop();
    this.lines = new Lines(stream);
    this.fetcher = new Fetcher(this.source, this.lines, { onChange: () => this.changed() });
    this.changed();
  }

  /** Holds new lines back; they are counted and come with `resume`. */
  pause(): void {
    this.frozenAt ??= this.nextLine;
    this.changed();
  }

  resume(): void {
    this.frozenAt = undefined;
    this.changed();
  }

  /** Leaves out what is shown now. The log itself keeps it. */
  clear(): void {
    this.clearedTo = this.end;
    this.changed();
  }

  unclear(): void {
    this.clearedTo = 1;
    this.changed();
  }

  setOutcome(outcome: Outcome): void {
    if (outcome.live === this.outcome.live && outcome.failed === this.outcome.failed) return;
    this.outcome = outcome;
    this.changed();
  }

  isOpen(group: Group): boolean {
    return this.groups.isOpen(group, this.outcome);
  }

  toggle(group: Group): void {
    this.groups.toggle(group, this.outcome);
    this.changed();
  }

  setAllGroups(open: boolean): void {
    this.groups.setAll(open);
    this.changed();
  }

  /** Makes sure that lines can be seen: out of folded groups, and of what was cleared. */
  reveal(from: number, to: number): void {
    if (from < this.clearedTo) this.clearedTo = 1;
    this.groups.reveal(from, to + 1, this.outcome);
    this.changed();
  }

  /** Finds the group markers of the whole log, also in lines that were not fetched. */
  async loadGroups(fromLine = 1): Promise<void> {
    if (!this.source.canSearch) return;
    let from: number | undefined = fromLine;
    for (let page = 0; page < GROUP_PAGES && from !== undefined && !this.groups.isFull; page += 1) {
      try {
        const query = { text: MARKER_PATTERN, regex: true, fromLine: from, limit: GROUP_PAGE, stream: undefined };
        const found = await this.source.search(query, this.abort.signal);
        for (const [index, line] of found.lines.entries()) {
          const marker = markerOf(line, found.texts[index] ?? '');
          if (marker) this.groups.add(marker);
        }
        from = found.nextLine;
      } catch {
        // Without groups a log can be read all the same.
        return;
      }
      if (this.abort.signal.aborted) return;
      this.changed();
    }
  }

  /** Decodes the end of what came. */
  private drain(): void {
    const [batches, taken] = [this.pending, this.taken];
    if (taken === undefined) return;
    [this.pending, this.taken] = [[], undefined];
    let next = taken;
    for (const batch of batches) {
      const from = Math.max(batch.firstLine, next, this.nextLine - MAX_AT_ONCE);
      if (from >= batch.nextLine) continue;
      const records = batch.records(from);
      this.lines.append(records, from, batch.nextLine);
      for (const record of records) this.mark(record);
      if (from > next) this.skipped(next);
      next = batch.nextLine;
    }
    this.lines.evict(this.around);
    this.refold();
  }

  private skipped(from: number): void {
    this.unmarkedFrom = Math.min(this.unmarkedFrom ?? from, from);
    if (!this.isCatchingUp) void this.catchUp();
  }

  private async catchUp(): Promise<void> {
    this.isCatchingUp = true;
    for (let from = this.unmarkedFrom; from !== undefined && !this.abort.signal.aborted; from = this.unmarkedFrom) {
      this.unmarkedFrom = undefined;
      await new Promise((resolve) => setTimeout(resolve, CATCH_UP_MS));
      await this.loadGroups(from);
    }
    this.isCatchingUp = false;
  }

  private mark(record: LogRecord): void {
    if (record.cont) return;
    const marker = markerOf(record.line, record.text);
    if (marker) this.groups.add(marker);
  }

  private changed(): void {
    this.refold();
    this.onChange();
  }

  private refold(): void {
    this.folds = this.stream === undefined ? this.groups.folds(this.nextLine, this.outcome) : NO_FOLDS;
  }
}
