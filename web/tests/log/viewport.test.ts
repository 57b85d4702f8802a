// The scroll position: exact nearby, proportional far away, the same cost for any log length.
import { describe, expect, it } from 'vitest';
import { Folds, NO_FOLDS } from '../../src/lib/log/folds';
import { Lines } from '../../src/lib/log/lines';
import { Rows } from '../../src/lib/log/rows';
import { TALLEST, Viewport } from '../../src/lib/log/viewport';
import { record } from './fake';

function viewport(count: number, heights?: (line: number) => number, folds = NO_FOLDS): Viewport {
  const view = new Viewport(new Rows(new Lines(), folds, 1, count + 1), 20, heights ? (row) => heights(row.line) : undefined);
  view.height = 410;
  return view;
}

const drawn = (view: Viewport): number[] => view.window().rows.map((row) => row.line);

describe('a log of ten million lines', () => {
  const TEN_MILLION = 10_000_000;

  it('draws as many rows as a short one', () => {
    const view = viewport(TEN_MILLION);
    const range = view.bar().height - view.height;
    for (const share of [0, 0.1, 0.5, 0.999_999, 1]) {
      view.scrollTo(share * range);
      expect(view.window().rows.length).toBeLessThan(40);
    }
  });

  it('fits the browser, and both its ends can be reached', () => {
    const view = viewport(TEN_MILLION);
    expect(view.bar().height).toBe(TALLEST);
    view.toEnd();
    expect(drawn(view).at(-1)).toBe(TEN_MILLION);
    expect(view.isAtEnd).toBe(true);
    expect(view.bar().top).toBeCloseTo(TALLEST - view.height, 3);
    view.scrollTo(0);
    expect(view.anchor).toEqual({ line: 1, offset: 0 });
    expect(view.isAtStart).toBe(true);
  });

  it('moves by single pixels anywhere, though the scroll bar cannot', () => {
    const view = viewport(TEN_MILLION);
    view.toLine(5_000_000);
    const start = { ...view.anchor };
    for (let count = 0; count < 50; count += 1) view.moveBy(1);
    expect(view.anchor).toEqual({ line: 5_000_002, offset: 10 });
    view.moveBy(-50);
    expect(view.anchor).toEqual(start);
  });

  it('the scroll bar matches the position', () => {
    const view = viewport(TEN_MILLION);
    for (const line of [1, 100_000, 5_000_000, 9_900_000]) {
      view.toLine(line);
      view.scrollTo(view.bar().top);
      expect(Math.abs(view.anchor.line - line)).toBeLessThanOrEqual(1);
    }
  });

  it('near both ends scrolling is exact to the pixel', () => {
    const view = viewport(TEN_MILLION, (line) => (line % 3 ? 20 : 100));
    view.toLine(100);
    expect(view.bar().top).toBe(66 * 20 + 33 * 100);
    view.toEnd();
    view.moveBy(-5_000);
    const bar = view.bar();
    expect(bar.height - view.height - bar.top).toBe(5_000);
    view.toLine(100_000);
    expect(view.bar().top).toBeGreaterThanOrEqual(10_000);
  });
});

describe('rows of any height', () => {
  it('the last row ends at the lower edge', () => {
    const view = viewport(100, (line) => (line % 2 ? 20 : 90));
    view.toEnd();
    const { rows, above } = view.window();
    const total = rows.reduce((sum, row) => sum + view.heightOf(row), 0);
    expect(total - above).toBe(view.height);
    view.moveBy(500);
    expect(view.isAtEnd).toBe(true);
    view.moveBy(-1);
    view.moveBy(-1);
    expect(view.isAtEnd).toBe(false);
  });

  it('scrolling back returns to the same position', () => {
    const view = viewport(1_000, (line) => 20 + (line % 7) * 13);
    view.toLine(300);
    const start = { ...view.anchor };
    for (const pixels of [17, 400, -33, 1_000, -1_384]) view.moveBy(pixels);
    expect(view.anchor).toEqual(start);
  });

  it('measured heights replace estimates', () => {
    const view = viewport(100);
    expect(view.measure(50, 200)).toBe(true);
    expect(view.measure(50, 200)).toBe(false);
    view.toLine(50);
    view.moveBy(199);
    expect(view.anchor).toEqual({ line: 50, offset: 199 });
    view.moveBy(1);
    expect(view.anchor).toEqual({ line: 51, offset: 0 });
  });

  it('a short log of tall rows is measured exactly', () => {
    const view = viewport(50, (line) => 20 * (1 + (line % 10)));
    view.toLine(20);
    const bar = view.bar();
    expect(bar.height).toBe(50 * 20 * 5.5);
    view.moveBy(-bar.top);
    expect(view.isAtStart).toBe(true);
  });

  it('a row taller than the screen is scrolled to its end', () => {
    const view = viewport(3, (line) => (line === 2 ? 5_000 : 20));
    view.toLine(2);
    view.moveBy(4_000);
    expect(view.anchor).toEqual({ line: 2, offset: 4_000 });
    view.moveBy(10_000);
    expect(view.isAtEnd).toBe(true);
  });
});

describe('short and folded logs', () => {
  it('a log that fits does not scroll', () => {
    const view = viewport(5);
    view.moveBy(100);
    expect([view.anchor, view.isAtEnd, view.isAtStart]).toEqual([{ line: 1, offset: 0 }, true, true]);
    expect(view.bar()).toEqual({ height: view.height, top: 0 });
  });

  it('an empty log has no rows', () => {
    const view = viewport(0);
    view.toEnd();
    view.moveBy(10);
    expect([drawn(view), view.bar().top, view.isAtEnd]).toEqual([[], 0, true]);
  });

  it('a closed group of five million lines takes one row of the scroll bar', () => {
    const view = viewport(5_000_100, undefined, Folds.of([{ from: 51, to: 5_000_051 }]));
    expect(view.bar().height).toBe(100 * 20);
    view.toLine(50);
    view.moveBy(20);
    expect(view.anchor.line).toBe(5_000_051);
    expect(view.bar().top).toBe(50 * 20);
  });

  it('selected lines appear in the upper third of the screen', () => {
    const view = viewport(1_000);
    view.toLine(500, 'third');
    expect(drawn(view)).toContain(500);
    expect(view.anchor.line).toBeLessThan(500);
  });

  it('joining rows does not move the position', () => {
    const lines = new Lines();
    const view = viewport(100);
    view.rows = new Rows(lines, NO_FOLDS, 1, 101);
    view.toLine(52);
    lines.put([record(50), record(51, 'a', { eol: false }), record(52, 'b', { cont: true })], 50, 53);
    expect(view.window().rows.some((row) => row.line === 51)).toBe(true);
  });
});
