// A row prepared for drawing: parsed, cut, highlighted. An unchanged row is the same object, so
// that it is not drawn again.
import { parseLine, type ParsedLine } from './ansi/parser';
import type { Span } from './ansi/span';
import type { Group } from './groups';
import { highlight } from './highlight';
import type { LineRange } from './permalink';
import type { Row } from './rows';
import type { LogStore } from './store';
import { fullTime, timeText, type TimeStyle } from './timestamp';

export interface Drawn {
  readonly key: string;
  readonly row: Row;
  readonly spans: readonly Span[];
  /** There is more of this line. */
  readonly cut: boolean;
  readonly group: Group | undefined;
  readonly isOpen: boolean;
  /** How many lines its group has. */
  readonly size: number | undefined;
  readonly chosen: boolean;
  /** The current hit of the search. */
  readonly hit: boolean;
  readonly time: string;
  readonly fullTime: string;
}

/** Everything beside the log itself that decides how rows look. */
export interface Look {
  times: TimeStyle;
  start: number;
  chosen: LineRange | null;
  hit: number | undefined;
  pattern: RegExp | undefined;
}

/** How much of a line is shown at first, and after each click on Show more. */
const STEPS = [
  { chars: 2_000, spans: 250 },
  { chars: 20_000, spans: 2_500 },
  { chars: Number.POSITIVE_INFINITY, spans: Number.POSITIVE_INFINITY },
];
/** The pieces of a very long line fill a screen soon enough. */
const PIECE = { chars: 400, spans: 50 };
const MAX_KEPT = 1_000;

export class Painter {
  private readonly drawn = new Map<number, Drawn>();
  private readonly parsed = new Map<string, ParsedLine>();
  private readonly steps = new Map<number, number>();

  constructor(private readonly store: LogStore) {}

  /** The row as it looks now. */
  draw(row: Row, look: Look): Drawn {
    const group = row.kind === 'line' && this.store.stream === undefined ? this.store.groups.at(row.line) : undefined;
    const isOpen = group !== undefined && this.store.isOpen(group);
    const chosen = look.chosen !== null && row.line <= look.chosen.to && row.next > look.chosen.from;
    const hit = look.hit !== undefined && row.line <= look.hit && row.next > look.hit;
    const at = row.kind === 'line' ? row.record.at : Number.NaN;
    const time = timeText(look.times, at, look.start);
    const step = this.steps.get(row.line) ?? 0;
    const size = group && this.store.groups.sizeOf(group);
    const key = [row.kind, row.next, step, isOpen, size, chosen, hit, time, look.pattern?.source ?? '', look.pattern?.flags ?? ''].join(
      ' ',
    );
    const known = this.drawn.get(row.line);
    if (known?.key === key && known.group === group) return known;
    const { spans, cut } = this.parse(row, step);
    const made = {
      key,
      row,
      spans: highlight(spans, look.pattern),
      cut,
      group,
      isOpen,
      size,
      chosen,
      hit,
      time,
      fullTime: fullTime(look.times, at),
    };
    if (this.drawn.size > MAX_KEPT) this.drawn.clear();
    this.drawn.set(row.line, made);
    return made;
  }

  /** Shows more of a line. */
  more(line: number): void {
    this.steps.set(line, Math.min((this.steps.get(line) ?? 0) + 1, STEPS.length - 1));
  }

  /** Another filter: the same lines may belong to other rows. */
  forget(): void {
    this.drawn.clear();
    this.parsed.clear();
  }

  private parse(row: Row, step: number): ParsedLine {
    if (row.kind !== 'line') return { spans: [], cut: false };
    const key = `${row.line} ${row.next} ${step}`;
    let parsed = this.parsed.get(key);
    if (!parsed) {
      parsed = parseLine(this.store.texts(row.record), step === 0 && row.record.cont ? PIECE : STEPS[step]);
      if (this.parsed.size > MAX_KEPT) this.parsed.clear();
      this.parsed.set(key, parsed);
    }
    return parsed;
  }
}
