// The rows of a log as they stand below each other: its lines without what is folded, filtered or joined to the row before, and with
// placeholders for what is not here yet and marks for what is gone. Walks from row to row; never needs to know them all.
import type { Folds } from './folds';
import type { Lines } from './lines';
import type { LogRecord } from './record';

export type Row =
  | { kind: 'line'; line: number; next: number; record: LogRecord }
  /** Not loaded yet. */
  | { kind: 'unknown'; line: number; next: number }
  /** The server has these lines no more. */
  | { kind: 'gap'; line: number; next: number };

export class Rows {
  constructor(
    private readonly lines: Lines,
    private readonly folds: Folds,
    /** The first line that is shown, and the one after the last. */
    readonly first: number,
    readonly end: number,
  ) {}

  /** How many lines are shown, as far as one can tell without reading them. */
  get count(): number {
    return Math.max(0, this.rank(this.end) - this.rank(this.first));
  }

  /** The place of a line among those that are shown, from 0. */
  rankOf(line: number): number {
    return this.rank(Math.min(Math.max(line, this.first), this.end)) - this.rank(this.first);
  }

  /** The line at a place among those that are shown. */
  lineAt(rank: number): number {
    return this.folds.lineAt(rank + this.rank(this.first));
  }

  /** The row that holds a line, or the first one behind it. */
  at(line: number): Row | undefined {
    const from = Math.max(line, this.first);
    const entry = this.lines.entry(from);
    const head = entry && entry.head !== entry.record && entry.head.line >= this.first ? entry.head.line : from;
    // A line inside a closed group belongs to the group's own row.
    const fold = this.folds.hides(head);
    const seen = fold && fold.from > this.first ? this.before(fold.from) : undefined;
    return seen ?? this.from(head);
  }

  after(row: Row): Row | undefined {
    return this.from(row.next);
  }

  before(line: number): Row | undefined {
    let to = Math.min(line, this.end);
    while (to > this.first) {
      const fold = this.folds.hides(to - 1);
      if (fold) {
        to = fold.from;
        continue;
      }
      const place = this.lines.before(to, this.first);
      if (!place) return this.lost(this.first, to);
      if (place.kind === 'unknown') {
        return { kind: 'unknown', line: this.lines.stream ? place.from : to - 1, next: to };
      }
      const { record, head } = place.entry;
      if (record.line < to - 1 && this.lines.stream === undefined) return this.lost(record.line + 1, to);
      if (head === record || head.line < this.first) return this.row(record);
      to = head.line + 1;
      if (this.folds.hides(head.line)) continue;
      return this.row(head);
    }
    return undefined;
  }

  private from(line: number): Row | undefined {
    let from = Math.max(line, this.first);
    while (from < this.end) {
      const fold = this.folds.hides(from);
      if (fold) {
        from = fold.to;
        continue;
      }
      const place = this.lines.at(from, this.end);
      if (!place) return this.lines.stream ? undefined : this.lost(from, this.end);
      if (place.kind === 'unknown') {
        if (place.from > from && this.lines.stream === undefined) return this.lost(from, place.from);
        return { kind: 'unknown', line: place.from, next: this.lines.stream ? place.to : place.from + 1 };
      }
      const { record, head } = place.entry;
      if (record.line > from && this.lines.stream === undefined) return this.lost(from, record.line);
      if (head === record || head.line < this.first) return this.row(record);
      from = record.line + 1;
    }
    return undefined;
  }

  private row(record: LogRecord): Row {
    let next = record.line + 1;
    while (this.lines.entry(next)?.head === record) next += 1;
    return { kind: 'line', line: record.line, next, record };
  }

  /** A stretch that is known to be gone. */
  private lost(from: number, to: number): Row | undefined {
    return from < to && this.lines.stream === undefined ? { kind: 'gap', line: from, next: to } : undefined;
  }

  private rank(line: number): number {
    return this.folds.rank(line);
  }
}
