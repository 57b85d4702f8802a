// Draws the rows of a log on the screen: which rows there are, how each looks, and what has to be fetched for them. Draws at most once a
// frame unless asked to draw at once.
import { flushSync } from 'svelte';
import { Painter, type Drawn, type Look } from './drawn';
import type { Row } from './rows';
import { Screen, type ScreenOwner, type ScreenParts } from './screen';
import type { LogStore } from './store';
import { Viewport } from './viewport';

/** Lines above and below the screen that are fetched with it. */
const AHEAD = 60;
/** How much of a long line is drawn by default. */
const MAX_CHARS = 2_000;
/** The approximate width of line number and padding. */
const MARGIN_PX = 90;

export interface StageOwner {
  readonly isOpen: boolean;
  /** Stay at the end. */
  readonly following: boolean;
  readonly wraps: boolean;
  readonly look: Omit<Look, 'start'> & { start: number | undefined };
  onDraw(rows: readonly Drawn[]): void;
  onDrawn(): void;
  /** The screen was scrolled. */
  onMove(pixels: number): void;
}

export class Stage implements ScreenOwner {
  private readonly painter: Painter;
  private readonly viewport: Viewport;
  private screen: Screen | undefined;
  private frame = 0;
  private upwards = true;
  private firstAt: number | undefined;
  private charsPerRow = 100;

  constructor(
    private readonly store: LogStore,
    private readonly owner: StageOwner,
  ) {
    this.painter = new Painter(store);
    this.viewport = new Viewport(store.rows(), 20, (row) => this.guess(row));
  }

  attach(parts: ScreenParts, rowHeight: number, charWidth: number): void {
    this.viewport.rowHeight = rowHeight;
    this.charsPerRow = Math.max(20, Math.floor((parts.scroller.clientWidth - MARGIN_PX) / charWidth));
    this.screen = new Screen(parts, this.viewport, this, () => this.invalidate());
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.screen?.close();
  }

  /** The line at the top. */
  get line(): number {
    return this.viewport.anchor.line;
  }

  get isAtEnd(): boolean {
    return this.viewport.isAtEnd;
  }

  get wraps(): boolean {
    return this.owner.wraps;
  }

  toLine(line: number, place: 'top' | 'third' = 'top'): void {
    this.screen?.sync();
    this.viewport.rows = this.store.rows();
    this.viewport.toLine(line, place);
  }

  moveRows(rows: number): void {
    this.moveBy(rows * this.viewport.rowHeight);
  }

  moveScreens(screens: number): void {
    this.moveBy(screens * Math.max(this.viewport.height - 2 * this.viewport.rowHeight, this.viewport.rowHeight));
  }

  /** Shows more of a long line. */
  more(line: number): void {
    this.painter.more(line);
    this.render();
  }

  /** Rows look different from now on. */
  restyle(): void {
    this.painter.forget();
    this.screen?.restyle();
  }

  /** Draws soon. */
  invalidate(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.render());
  }

  /** Draws now. */
  render(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.screen || !this.owner.isOpen) return;
    this.viewport.rows = this.store.rows();
    const rows = this.screen.render(() => {
      if (this.owner.following) this.viewport.toEnd();
      else this.viewport.clamp();
    });
    this.owner.onDrawn();
    const [first, last] = [rows[0], rows.at(-1)];
    if (!first || !last) return;
    const from = Math.max(this.viewport.rows.first, first.line - AHEAD);
    this.store.want({ from, to: last.next + AHEAD, upwards: this.upwards || this.owner.following });
  }

  draw(rows: readonly Row[]): void {
    const first = rows[0];
    if (this.firstAt === undefined && first?.kind === 'line' && first.line === 1) this.firstAt = first.record.at;
    const look = this.owner.look;
    const start = look.start ?? this.firstAt ?? (first?.kind === 'line' ? first.record.at : 0);
    const drawn = rows.map((row) => this.painter.draw(row, { ...look, start }));
    flushSync(() => this.owner.onDraw(drawn));
  }

  onMove(pixels: number): void {
    if (pixels !== 0) this.upwards = pixels < 0;
    this.owner.onMove(pixels);
  }

  private moveBy(pixels: number): void {
    this.screen?.sync();
    this.viewport.moveBy(pixels);
    this.onMove(pixels);
  }

  /** The estimated height of a row. */
  private guess(row: Row): number {
    const chars = row.kind === 'line' && this.owner.wraps ? Math.min(row.record.text.length, MAX_CHARS) : 1;
    return this.viewport.rowHeight * Math.max(1, Math.ceil(chars / this.charsPerRow));
  }
}
