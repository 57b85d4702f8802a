// The part of a log that is in memory: pages of records in order, each with the range of lines that
// it covers. A covered line without a record is filtered out (another stream) or gone; a line that
// no page covers was not fetched. Pages far from the visible lines are dropped. Knows nothing of
// the network.
import type { LogRecord, Stream } from './record';

/** A stretch of the log. All its lines from `from` to before `to` are known. */
interface Page {
  from: number;
  to: number;
  records: Entry[];
  chars: number;
}

/** A record and the row it belongs to. */
export interface Entry {
  record: LogRecord;
  /** The first record of its row: itself, unless it continues a short line. */
  head: LogRecord;
  /** How many characters and records its row has, up to this one. */
  joined: number;
  count: number;
}

/** A place in the log as `at`, `next` and `previous` find it. */
export type Place = { kind: 'record'; entry: Entry } | { kind: 'unknown'; from: number; to: number };

/** Lines are joined up to here; the rest of a longer one is shown as rows of its own. */
const MAX_JOINED_CHARS = 8_192;
const MAX_JOINED_RECORDS = 256;
const LIVE_PAGE_RECORDS = 256;

export class Lines {
  private pages: Page[] = [];
  private kept = { records: 0, chars: 0 };

  constructor(
    readonly stream: Stream | undefined = undefined,
    private readonly most = { records: 20_000, chars: 24_000_000 },
  ) {}

  get size(): { records: number; chars: number } {
    return this.kept;
  }

  /** Takes records that cover the lines from `from` to before `to`; what is known already stays as it is. */
  put(records: readonly LogRecord[], from: number, to: number): void {
    let start = from;
    for (const page of [...this.pages, undefined]) {
      const until = Math.min(page?.from ?? to, to);
      if (start < until) this.insert(records, start, until);
      start = Math.max(start, page?.to ?? start);
      if (start >= to) return;
    }
  }

  /** Takes records that follow the last page, such as live ones do. */
  append(records: readonly LogRecord[], from: number, to: number): void {
    const last = this.pages.at(-1);
    if (!last || last.to !== from || last.records.length >= LIVE_PAGE_RECORDS) {
      this.put(records, from, to);
      return;
    }
    const wanted = records.filter((record) => record.line >= from && record.line < to && this.takes(record));
    this.link(wanted, last);
    last.to = to;
  }

  /** Forgets everything from this line on. */
  truncate(line: number): void {
    this.pages = this.pages.filter((page) => page.to <= line);
    this.recount();
  }

  /** The first place at or after a line; `undefined` at `end` and beyond. */
  at(line: number, end: number): Place | undefined {
    let from = line;
    for (let index = this.indexOf(line); from < end; index += 1) {
      const page = this.pages[index];
      if (!page || page.from > from) return { kind: 'unknown', from, to: Math.min(page?.from ?? end, end) };
      const entry = page.records[lowest(page.records, from)];
      if (entry) return entry.record.line < end ? { kind: 'record', entry } : undefined;
      from = page.to;
    }
    return undefined;
  }

  /** The last place before a line; `undefined` where there is none from `start` on. */
  before(line: number, start: number): Place | undefined {
    let to = line;
    while (to > start) {
      const index = this.indexOf(to - 1);
      const page = this.pages[index];
      if (!page || page.from >= to) return { kind: 'unknown', from: Math.max(this.pages[index - 1]?.to ?? start, start), to };
      const entry = page.records[lowest(page.records, to) - 1];
      if (entry) return entry.record.line >= start ? { kind: 'record', entry } : undefined;
      to = page.from;
    }
    return undefined;
  }

  /** The record of a line, if it is here. */
  entry(line: number): Entry | undefined {
    const page = this.pages[this.indexOf(line)];
    const found = page?.records[lowest(page.records, line)];
    return found?.record.line === line ? found : undefined;
  }

  /** Whether a line is known, be it there or not. */
  covers(line: number): boolean {
    const page = this.pages[this.indexOf(line)];
    return page !== undefined && page.from <= line && line < page.to;
  }

  /** The texts of the row that a record heads. */
  row(head: LogRecord): string[] {
    const texts = [head.text];
    for (let line = head.line + 1; ; line += 1) {
      const entry = this.entry(line);
      if (entry?.head !== head) return texts;
      texts.push(entry.record.text);
    }
  }

  /** Drops what is farthest from a line, the log's last page excepted, until the rest fits. */
  evict(around: number): void {
    const distance = (page: Page): number => Math.max(page.from - around, around - page.to, 0);
    while (this.kept.records > this.most.records || this.kept.chars > this.most.chars) {
      const rest = this.pages.slice(0, -1);
      const farthest = rest.reduce<Page | undefined>((far, page) => (far && distance(far) >= distance(page) ? far : page), undefined);
      if (!farthest || distance(farthest) === 0) return;
      this.pages = this.pages.filter((page) => page !== farthest);
      this.recount();
    }
  }

  private takes(record: LogRecord): boolean {
    return this.stream === undefined || record.stream === this.stream;
  }

  private insert(records: readonly LogRecord[], from: number, to: number): void {
    const wanted = records.filter((record) => record.line >= from && record.line < to && this.takes(record));
    const page: Page = { from, to, records: [], chars: 0 };
    const index = this.pages.findIndex((other) => other.from >= to);
    this.pages.splice(index < 0 ? this.pages.length : index, 0, page);
    this.link(wanted, page);
    this.relink(page);
  }

  /** Adds records to a page, each joined to the row before it where it continues that. */
  private link(records: readonly LogRecord[], page: Page): void {
    for (const record of records) {
      const entry = joined(record, page.records.at(-1) ?? this.entry(record.line - 1));
      page.records.push(entry);
      page.chars += record.text.length;
      this.kept.records += 1;
      this.kept.chars += record.text.length;
    }
  }

  /** The first records of the page behind this one may continue its last row. */
  private relink(page: Page): void {
    const next = this.pages[this.pages.indexOf(page) + 1];
    if (!next || next.from !== page.to) return;
    let before = page.records.at(-1);
    for (const [index, entry] of next.records.entries()) {
      if (!entry.record.cont) return;
      before = joined(entry.record, before);
      next.records[index] = before;
    }
  }

  private recount(): void {
    this.kept = { records: 0, chars: 0 };
    for (const page of this.pages) {
      this.kept.records += page.records.length;
      this.kept.chars += page.chars;
    }
  }

  /** The index of the page that covers a line, or else of the first one behind it. */
  private indexOf(line: number): number {
    let [low, high] = [0, this.pages.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.pages[middle]?.to ?? 0) <= line) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function joined(record: LogRecord, before: Entry | undefined): Entry {
  const continues = record.cont && before?.record.line === record.line - 1 && !before.record.eol && before.record.stream === record.stream;
  if (!continues || before.joined + record.text.length > MAX_JOINED_CHARS || before.count >= MAX_JOINED_RECORDS) {
    return { record, head: record, joined: record.text.length, count: 1 };
  }
  return { record, head: before.head, joined: before.joined + record.text.length, count: before.count + 1 };
}

/** The index of the first entry at or after a line. */
function lowest(entries: readonly Entry[], line: number): number {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.record.line ?? 0) < line) low = middle + 1;
    else high = middle;
  }
  return low;
}
