// Which rows are on the screen. The place is a row and how far it is scrolled out at the top, never a number of pixels from the log's
// start: rows may be of any height and be unknown, and ten million of them cost no more than fifty. Knows rows and heights, no elements.
import type { Row, Rows } from './rows';

/** The browser's own limit on heights lies at 17 million pixels or more. */
export const TALLEST = 8_000_000;
const OVERSCAN_ROWS = 6;
/** So near to an end the scroll bar counts real pixels: it must not stop before the log does. */
const NEAR_PX = 10_000;

export interface Anchor {
  line: number;
  /** Pixels of that row above the top edge. */
  offset: number;
}

export class Viewport {
  anchor: Anchor = { line: 1, offset: 0 };
  /** The height of the screen's part. */
  height = 0;
  private readonly measured = new Map<number, number>();
  /** How far the scroll bar can go. */
  private range = 0;

  constructor(
    public rows: Rows,
    /** The height of an unwrapped row. */
    public rowHeight: number,
    /** A guess at the height of a row that was never drawn. */
    public guess: (row: Row) => number = () => this.rowHeight,
  ) {}

  heightOf(row: Row): number {
    return this.measured.get(row.line) ?? this.guess(row);
  }

  /** Notes how tall a row came out; whether that was news. */
  measure(line: number, height: number): boolean {
    if (this.measured.get(line) === height) return false;
    if (this.measured.size > 5_000) this.measured.clear();
    this.measured.set(line, height);
    return true;
  }

  /** Rows are drawn in another way from now on. */
  forget(): void {
    this.measured.clear();
  }

  /** The rows to draw, and how far above the top edge the first one begins. */
  window(): { rows: Row[]; above: number } {
    const first = this.top();
    if (!first) return { rows: [], above: 0 };
    const rows = [first];
    let above = this.anchor.offset;
    for (let count = 0, row = this.rows.before(first.line); row && count < OVERSCAN_ROWS; count += 1, row = this.rows.before(row.line)) {
      rows.unshift(row);
      above += this.heightOf(row);
    }
    let below = this.heightOf(first) - this.anchor.offset;
    let spare = OVERSCAN_ROWS;
    for (let row = this.rows.after(first); row && spare > 0; row = this.rows.after(row)) {
      rows.push(row);
      below += this.heightOf(row);
      if (below > this.height) spare -= 1;
    }
    return { rows, above };
  }

  /** Moves by pixels, as far as there is something. */
  moveBy(pixels: number): void {
    let row = this.top();
    if (!row) return;
    let offset = this.anchor.offset + pixels;
    while (offset < 0) {
      const before = this.rows.before(row.line);
      if (!before) break;
      row = before;
      offset += this.heightOf(row);
    }
    while (offset >= this.heightOf(row)) {
      const after = this.rows.after(row);
      if (!after) break;
      offset -= this.heightOf(row);
      row = after;
    }
    this.anchor = { line: row.line, offset: Math.max(0, offset) };
    this.clamp();
  }

  /** Brings a line to the top, or a third of the way down. */
  toLine(line: number, place: 'top' | 'third' = 'top'): void {
    const row = this.rows.at(line) ?? this.rows.before(line);
    this.anchor = { line: row?.line ?? this.rows.first, offset: 0 };
    if (place === 'third') this.moveBy(-Math.floor(this.height / 3));
    else this.clamp();
  }

  /** Shows the last rows. */
  toEnd(): void {
    this.anchor = this.last();
  }

  get isAtEnd(): boolean {
    const [last, anchor] = [this.last(), this.anchor];
    return anchor.line > last.line || (anchor.line === last.line && anchor.offset >= last.offset - 1);
  }

  get isAtStart(): boolean {
    const row = this.top();
    return !row || (this.anchor.offset <= 0 && !this.rows.before(row.line));
  }

  /**
   * The height and position of the scroll bar. A short log is measured in pixels. In a long one the
   * bar stands for shares of the log, except near both ends, where scrolling is exact to the pixel.
   */
  bar(): { height: number; top: number } {
    const [above, below] = [this.pixelsAbove(), this.pixelsBelow()];
    this.range = this.rangeFor(above, below);
    let top: number;
    if (above !== undefined) top = above;
    else if (below !== undefined) top = this.range - below;
    else top = Math.min(Math.max(this.share() * this.range, NEAR_PX), this.range - NEAR_PX);
    return { height: this.range + this.height, top };
  }

  /** Goes where the scroll bar was taken to. */
  scrollTo(top: number): void {
    const share = this.range <= 0 ? 0 : Math.min(1, Math.max(0, top / this.range));
    if (share >= 1) {
      this.toEnd();
      return;
    }
    const place = share * this.place(this.last());
    const row = this.rows.at(this.rows.lineAt(Math.floor(place)));
    this.anchor = { line: row?.line ?? this.rows.first, offset: row ? (place % 1) * this.heightOf(row) : 0 };
    this.clamp();
  }

  /** Keeps the end of the log at the lower edge: no empty space below it while there are rows above. */
  clamp(): void {
    let row = this.top();
    if (!row) return;
    this.anchor = { line: row.line, offset: Math.min(this.anchor.offset, this.heightOf(row)) };
    let below = -this.anchor.offset;
    for (; row; row = this.rows.after(row)) {
      below += this.heightOf(row);
      if (below >= this.height) return;
    }
    this.toEnd();
  }

  private top(): Row | undefined {
    return this.rows.at(this.anchor.line) ?? this.rows.before(this.anchor.line);
  }

  /** The anchor at which the last row ends at the lower edge. */
  private last(): Anchor {
    let height = 0;
    let anchor: Anchor = { line: this.rows.first, offset: 0 };
    for (let row = this.rows.before(this.rows.end); row; row = this.rows.before(row.line)) {
      height += this.heightOf(row);
      anchor = { line: row.line, offset: Math.max(0, height - this.height) };
      if (height >= this.height) return anchor;
    }
    return { line: anchor.line, offset: 0 };
  }

  private rangeFor(above: number | undefined, below: number | undefined): number {
    if (above !== undefined && below !== undefined) return above + below;
    return Math.min(Math.max(this.rows.count * this.rowHeight - this.height, 3 * NEAR_PX), TALLEST - this.height);
  }

  /** The pixels above the screen, if they are few. */
  private pixelsAbove(): number | undefined {
    let pixels = this.anchor.offset;
    for (let row = this.rows.before(this.anchor.line); row; row = this.rows.before(row.line)) {
      pixels += this.heightOf(row);
      if (pixels > NEAR_PX) return undefined;
    }
    return pixels;
  }

  /** The pixels below the screen, if they are few. */
  private pixelsBelow(): number | undefined {
    let pixels = -this.anchor.offset - this.height;
    for (let row = this.top(); row; row = this.rows.after(row)) {
      pixels += this.heightOf(row);
      if (pixels > NEAR_PX) return undefined;
    }
    return Math.max(0, pixels);
  }

  /** How far through the log the screen is, 0 to 1. */
  private share(): number {
    const end = this.place(this.last());
    return end <= 0 ? 0 : Math.min(1, this.place(this.anchor) / end);
  }

  /** A place counted in rows. */
  private place(anchor: Anchor): number {
    const row = this.rows.at(anchor.line);
    const height = row ? this.heightOf(row) : this.rowHeight;
    return this.rows.rankOf(anchor.line) + (height > 0 ? anchor.offset / height : 0);
  }
}
