// Terminal output to spans of text, one line at a time. What a record leaves unfinished (a colour, a link, half a sequence, the cursor of a
// progress bar) goes on in the record that continues its line; a new line begins plain.
import { Cells } from './cells';
import { tokenize, type Token } from './escape';
import { safeHref } from './link';
import { PLAIN, pressed, type Pen } from './pen';
import type { Span } from './span';

/** How much of a line is shown. */
export interface Cut {
  /** Characters at most. */
  chars: number;
  /** Spans at most: a line may change its colour with every character. */
  spans: number;
}

export const WHOLE: Cut = { chars: Number.POSITIVE_INFINITY, spans: Number.POSITIVE_INFINITY };

/** A line, as far as it is shown. */
export interface ParsedLine {
  spans: Span[];
  /** There is more of it. */
  cut: boolean;
}

export class AnsiLine {
  private readonly cells = new Cells();
  private pen: Pen = PLAIN;
  private rest = '';

  /** How many characters it has so far. */
  get size(): number {
    return this.cells.size;
  }

  /** Takes the line's next record; stops once it has more than `enough` characters. */
  push(text: string, enough = Number.POSITIVE_INFINITY): void {
    this.rest = tokenize(this.rest + text, (token) => {
      this.take(token);
      return this.cells.size <= enough;
    });
  }

  /** What the line looks like. */
  line(cut: Cut = WHOLE): ParsedLine {
    const { spans, end } = this.cells.spans(0, cut.chars, cut.spans);
    return { spans, cut: end < this.cells.size };
  }

  private take(token: Token): void {
    switch (token.kind) {
      case 'text':
        this.cells.write(token.text);
        break;
      case 'sgr':
        this.use(pressed(this.pen, token.params));
        break;
      case 'link':
        this.use({ ...this.pen, href: safeHref(token.uri) });
        break;
      case 'return':
        this.cells.moveTo(0);
        break;
      case 'back':
        this.cells.moveBy(-1);
        break;
      case 'column':
        if (token.move === 'to') this.cells.moveTo(token.count);
        else this.cells.moveBy(token.count);
        break;
      case 'erase':
        this.cells.erase(token.mode);
        break;
    }
  }

  private use(pen: Pen): void {
    this.pen = pen;
    this.cells.use(pen);
  }
}

/** Whatever brings the cursor back: then the end of a line decides what stands at its beginning. */
const RETURNS = /[\r\b]|(?:\u001b\[|\u009b)[0-9;]*[DGK]/;

/** A line made of these records. */
export function parseLine(records: readonly string[], cut: Cut = WHOLE): ParsedLine {
  const line = new AnsiLine();
  const enough = records.some((record) => RETURNS.test(record)) ? Number.POSITIVE_INFINITY : cut.chars;
  for (const record of records) {
    line.push(record, enough);
    if (line.size > enough) break;
  }
  return line.line(cut);
}

/** A line's text as it is seen, without any colours. */
export function plainText(records: readonly string[]): string {
  return parseLine(records)
    .spans.map((span) => span.text)
    .join('');
}
