// Searching a whole log in both directions, and highlighting matches.
import { describe, expect, it } from 'vitest';
import { finder, highlight } from '../../src/lib/log/highlight';
import { Search } from '../../src/lib/log/search';
import { FakeLog } from './fake';

const EVERY = 7;
const log = (count = 100_000): FakeLog => new FakeLog(count, (line) => ({ text: line % EVERY === 0 ? `Error in ${line}` : 'fine' }));
const search = (source: FakeLog, text = 'Error', more = {}): Search =>
  new Search(source, { text, regex: false, matchCase: true, ...more }, undefined, () => source.count + 1);
const total = Math.floor(100_000 / EVERY);

describe('search', () => {
  it('counts all matches and starts at the screen', async () => {
    const found = search(log());
    expect(await found.start(1)).toEqual({ total, atLeast: false, rank: 1, line: 7 });
    expect(await search(log()).start(50_000)).toEqual({
      total,
      atLeast: false,
      rank: Math.ceil(50_000 / EVERY),
      line: Math.ceil(50_000 / EVERY) * EVERY,
    });
  });

  it('visits every match both ways, wrapping around', async () => {
    const source = log(20_000);
    const all = Math.floor(20_000 / EVERY);
    const found = search(source);
    let hits = await found.start(1);
    for (let rank = 2; rank <= all; rank += 1) {
      hits = await found.next(hits.line as number);
      expect([hits.rank, hits.line]).toEqual([rank, rank * EVERY]);
    }
    hits = await found.next(hits.line as number);
    expect([hits.rank, hits.line]).toEqual([1, EVERY]);
    hits = await found.previous(hits.line as number);
    expect([hits.rank, hits.line]).toEqual([all, all * EVERY]);
    for (let rank = all - 1; rank >= 1; rank -= 1) {
      hits = await found.previous(hits.line as number);
      expect([hits.rank, hits.line]).toEqual([rank, rank * EVERY]);
    }
  });

  it('finds the only match of a long log from anywhere', async () => {
    const source = new FakeLog(100_000, (line) => ({ text: line === 3 ? 'needle' : 'hay' }));
    const found = search(source, 'needle');
    expect(await found.start(90_000)).toMatchObject({ total: 1, rank: 1, line: 3 });
    expect(await found.previous(90_000)).toMatchObject({ rank: 1, line: 3 });
    expect(await found.previous(3)).toMatchObject({ rank: 1, line: 3 });
    expect(await found.next(3)).toMatchObject({ rank: 1, line: 3 });
  });

  it('an empty result is not requested twice', async () => {
    const source = log(1_000);
    const found = search(source, 'absent');
    expect(await found.start(500)).toEqual({ total: 0, atLeast: false, rank: 0, line: undefined });
    expect(source.asked).toHaveLength(1);
  });

  it('updates the count while the log grows', async () => {
    const source = log(70);
    const found = search(source);
    expect((await found.start(1)).total).toBe(10);
    source.count = 140;
    expect((await found.recount()).total).toBe(20);
    expect(await found.next(70)).toMatchObject({ rank: 11, line: 77 });
  });

  it('ignores case only when asked to', async () => {
    const source = log(1_000);
    expect((await search(source, 'error.', { matchCase: false }).start(1)).total).toBe(0);
    expect(source.asked.at(-1)).toBe('search (?i)error\\. 1');
    expect((await search(source, 'error', { matchCase: false }).start(1)).total).toBe(142);
    expect((await search(source, '^Err.*7$', { regex: true }).start(1)).total).toBeGreaterThan(0);
  });
});

describe('marks', () => {
  const spans = [
    { text: 'an er', classes: 'ansi-bold' },
    { text: 'ror here', classes: '' },
  ];

  it('split spans and keep their styles', () => {
    expect(highlight(spans, finder({ text: 'error', regex: false, matchCase: true }))).toEqual([
      { text: 'an ', classes: 'ansi-bold' },
      { text: 'er', classes: 'ansi-bold log-match' },
      { text: 'ror', classes: 'log-match' },
      { text: ' here', classes: '' },
    ]);
  });

  it('no match changes nothing', () => expect(highlight(spans, finder({ text: 'x', regex: false, matchCase: true }))).toBe(spans));

  it('special characters match literally', () => {
    const found = highlight([{ text: 'a.b*c a+b', classes: '' }], finder({ text: '.b*', regex: false, matchCase: true }));
    expect(found.map((span) => span.text)).toEqual(['a', '.b*', 'c a+b']);
  });

  it.each(['(', '(?P<x>a)', '(a+)+$', '(a*)*', 'x{2}{3}'])('%s, which the browser cannot or must not look for, is left alone', (text) => {
    expect(finder({ text, regex: true, matchCase: true })).toBeUndefined();
  });

  it('an empty match marks nothing', () => expect(highlight(spans, finder({ text: 'x*', regex: true, matchCase: true }))).toBe(spans));
});
