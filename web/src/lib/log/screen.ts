// The scrolling element and its content. Short moves use the browser's own pixels; a jump of the
// scroll bar goes to that share of the log. The bar is corrected once it is idle. Knows elements
// and the viewport, nothing of logs.
import type { Row } from './rows';
import type { Viewport } from './viewport';

/**
 * A move of more than this many screens is a jump of the scroll bar, unless it follows a wheel or
 * touch event.
 */
const LEAP = 2;
const MOVING_MS = 500;
const IDLE_MS = 150;
const MAX_PASSES = 4;
const MOVING = ['wheel', 'touchmove'] as const;

export interface ScreenParts {
  scroller: HTMLElement;
  /** As tall as the scroll bar should say. */
  spacer: HTMLElement;
  /** Holds the rows, one element each. */
  content: HTMLElement;
}

export interface ScreenOwner {
  /** Draws these rows synchronously. */
  draw(rows: readonly Row[]): void;
  /** The user scrolled. */
  onMove(pixels: number): void;
  /** Rows wrap, so their heights are measured. */
  readonly wraps: boolean;
}

export class Screen {
  private lastTop = 0;
  private widest = 0;
  private idle: ReturnType<typeof setTimeout> | undefined;
  private readonly resized: ResizeObserver;
  private width = 0;
  private movedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly parts: ScreenParts,
    private readonly viewport: Viewport,
    private readonly owner: ScreenOwner,
    onResize: () => void,
  ) {
    viewport.height = parts.scroller.clientHeight;
    this.resized = new ResizeObserver(() => {
      if (parts.scroller.clientWidth !== this.width) viewport.forget();
      onResize();
    });
    this.resized.observe(parts.scroller);
    parts.scroller.addEventListener('scroll', this.scrolled, { passive: true });
    for (const name of MOVING) parts.scroller.addEventListener(name, this.moving, { passive: true });
    parts.scroller.addEventListener('pointerdown', this.grabbed, { passive: true });
  }

  close(): void {
    clearTimeout(this.idle);
    this.resized.disconnect();
    const { scroller } = this.parts;
    scroller.removeEventListener('scroll', this.scrolled);
    for (const name of MOVING) scroller.removeEventListener(name, this.moving);
    scroller.removeEventListener('pointerdown', this.grabbed);
  }

  /** Rows look different from now on. */
  restyle(): void {
    this.widest = 0;
    this.viewport.forget();
  }

  /** Draws what the viewport shows. `settle` puts it where it belongs once heights are known. */
  render(settle: () => void): readonly Row[] {
    const { scroller } = this.parts;
    this.viewport.height = scroller.clientHeight;
    this.width = scroller.clientWidth;
    settle();
    let window = this.viewport.window();
    for (let pass = 0; pass < MAX_PASSES; pass += 1) {
      this.owner.draw(window.rows);
      if (!this.measure()) break;
      settle();
      window = this.viewport.window();
    }
    this.place(window.above);
    return window.rows;
  }

  /** Corrects the bar at once. */
  sync(): void {
    clearTimeout(this.idle);
    this.idle = undefined;
  }

  private readonly scrolled = (): void => {
    const { scroller } = this.parts;
    const top = scroller.scrollTop;
    const pixels = top - this.lastTop;
    this.lastTop = top;
    if (Math.abs(pixels) < 0.5) return;
    const isMoving = performance.now() - this.movedAt < MOVING_MS;
    // Momentum scrolling continues after the touch ends.
    if (isMoving) this.moving();
    if (!isMoving && Math.abs(pixels) > LEAP * this.viewport.height) this.viewport.scrollTo(top);
    else this.viewport.moveBy(pixels);
    clearTimeout(this.idle);
    const atEdge = top <= 0 || top >= scroller.scrollHeight - scroller.clientHeight - 1;
    this.idle = atEdge ? undefined : setTimeout(() => this.rest(), IDLE_MS);
    this.owner.onMove(pixels);
  };

  private readonly moving = (): void => {
    this.movedAt = performance.now();
  };

  private readonly grabbed = (): void => {
    this.movedAt = Number.NEGATIVE_INFINITY;
  };

  private rest(): void {
    this.idle = undefined;
    this.owner.onMove(0);
  }

  /** Measures the rows; returns whether any height differs from its estimate. */
  private measure(): boolean {
    if (!this.owner.wraps) return false;
    let news = false;
    for (const element of this.parts.content.children) {
      const line = Number((element as HTMLElement).dataset['line']);
      if (Number.isNaN(line)) continue;
      news = this.viewport.measure(line, element.getBoundingClientRect().height) || news;
    }
    return news;
  }

  private place(above: number): void {
    const { scroller, spacer, content } = this.parts;
    const bar = this.viewport.bar();
    spacer.style.height = `${bar.height}px`;
    this.widest = this.owner.wraps ? 0 : Math.max(this.widest, content.scrollWidth);
    spacer.style.width = this.widest > scroller.clientWidth ? `${this.widest}px` : '';
    if (this.idle === undefined && Math.abs(scroller.scrollTop - bar.top) >= 1) scroller.scrollTop = bar.top;
    this.lastTop = scroller.scrollTop;
    content.style.transform = `translateY(${Math.round(this.lastTop - above)}px)`;
  }
}
