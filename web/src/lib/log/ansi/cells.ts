// One line of a terminal: characters in cells, each with its pen, and a cursor that `\r` and backspace move back. So a progress bar ends
// as a terminal would leave it, in one pass over its bytes however often it was drawn.
import { codeName } from '../../format';
import { PLAIN, type Pen } from './pen';
import { span, type Span } from './span';

/** No line grows beyond this by cursor moves alone: `ESC [ 99999 C` is no text. */
const FARTHEST_MOVE = 1_000;

export class Cells {
  private chars: Uint32Array = new Uint32Array(256);
  private styles: Uint32Array = new Uint32Array(256);
  private readonly pens: Pen[] = [PLAIN];
  private pen = 0;
  private cursor = 0;
  private length = 0;

  /** How many characters the line has. */
  get size(): number {
    return this.length;
  }

  /** Uses this pen from here on. */
  use(pen: Pen): void {
    if (this.pens[this.pen] === pen) return;
    this.pen = this.pens.length;
    this.pens.push(pen);
  }

  /** Writes at the cursor, over what is there. */
  write(text: string): void {
    this.room(this.cursor + text.length);
    const { chars, styles, pen } = this;
    let cursor = this.cursor;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.codePointAt(at) as number;
      if (code > 0xffff) at += 1;
      chars[cursor] = code;
      styles[cursor] = pen;
      cursor += 1;
    }
    this.cursor = cursor;
    this.length = Math.max(this.length, cursor);
  }

  /** Moves to a column, counted from 0; a gap is filled with spaces when something is written behind it. */
  moveTo(column: number): void {
    const target = Math.min(Math.max(column, 0), this.length + FARTHEST_MOVE);
    this.room(target);
    for (let at = this.length; at < target; at += 1) {
      this.chars[at] = 0x20;
      this.styles[at] = 0;
    }
    this.cursor = target;
    this.length = Math.max(this.length, target);
  }

  moveBy(count: number): void {
    this.moveTo(this.cursor + count);
  }

  /** Erases: 0 from the cursor on, 1 up to it, 2 all. */
  erase(mode: number): void {
    if (mode === 0) {
      this.length = this.cursor;
      return;
    }
    const end = mode === 2 ? this.length : Math.min(this.cursor + 1, this.length);
    this.chars.fill(0x20, 0, end);
    this.styles.fill(0, 0, end);
    if (mode === 2) this.length = this.cursor;
  }

  /** The characters from one column to another as spans, at most so many of them; and the column where they end. */
  spans(from: number, to: number, most: number): { spans: Span[]; end: number } {
    const out: Span[] = [];
    const end = Math.min(to, this.length);
    let at = from;
    while (at < end && out.length < most) {
      const style = this.styles[at] ?? 0;
      const pen = this.pens[style] ?? PLAIN;
      const kind = markOf(this.chars[at] ?? 0);
      let until = at + 1;
      while (until < end && this.alike(style, pen, until) && markOf(this.chars[until] ?? 0) === kind) until += 1;
      if (kind) out.push(...this.marks(at, until, kind));
      else out.push(span(this.text(at, until), pen));
      at = until;
    }
    return { spans: out, end: at };
  }

  /** Two pens may be set anew to the same settings. */
  private alike(style: number, pen: Pen, at: number): boolean {
    const other = this.styles[at] ?? 0;
    return other === style || same(pen, this.pens[other] ?? PLAIN);
  }

  private text(from: number, to: number): string {
    let out = '';
    // The arguments of a call are limited in number.
    for (let at = from; at < to; at += 4_096) {
      out += String.fromCodePoint(...this.chars.subarray(at, Math.min(at + 4_096, to)));
    }
    return out;
  }

  private marks(from: number, to: number, kind: string): Span[] {
    return [{ text: Array.from(this.chars.subarray(from, to), codeName).join(''), classes: kind }];
  }

  private room(size: number): void {
    if (size <= this.chars.length) return;
    const next = Math.max(size, this.chars.length * 2);
    const [chars, styles] = [new Uint32Array(next), new Uint32Array(next)];
    chars.set(this.chars);
    styles.set(this.styles);
    [this.chars, this.styles] = [chars, styles];
  }
}

/** The class of a character that must not be obeyed but seen: whatever turns the direction of writing, and line separators. */
function markOf(code: number): string {
  if (code < 0x061c) return '';
  const turns =
    code === 0x061c || code === 0x200e || code === 0x200f || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return turns || code === 0x2028 || code === 0x2029 ? 'ansi-mark' : '';
}

function same(one: Pen, other: Pen): boolean {
  const color = (a: Pen['text'], b: Pen['text']): boolean => a === b || (typeof a === 'object' && typeof b === 'object' && a.rgb === b.rgb);
  return (
    color(one.text, other.text) &&
    color(one.ground, other.ground) &&
    one.bold === other.bold &&
    one.dim === other.dim &&
    one.italic === other.italic &&
    one.underline === other.underline &&
    one.inverse === other.inverse &&
    one.strike === other.strike &&
    one.hidden === other.hidden &&
    one.href === other.href
  );
}
