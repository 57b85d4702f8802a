// Log lines in memory, folds, and the rows that result.
import { describe, expect, it } from 'vitest';
import { Folds, NO_FOLDS } from '../../src/lib/log/folds';
import { Groups } from '../../src/lib/log/groups';
import { Lines } from '../../src/lib/log/lines';
import { markerOf } from '../../src/lib/log/marker';
import type { LogRecord } from '../../src/lib/log/record';
import { Rows, type Row } from '../../src/lib/log/rows';
import { record } from './fake';

const run = (from: number, to: number): LogRecord[] => Array.from({ length: to - from }, (_, index) => record(from + index));
const name = (row: Row): string => (row.kind === 'line' ? String(row.line) : `${row.kind} ${row.line}-${row.next - 1}`);

function walk(rows: Rows): string[] {
  const out: string[] = [];
  for (let row = rows.at(rows.first); row; row = rows.after(row)) out.push(name(row));
  return out;
}

function walkBack(rows: Rows): string[] {
  const out: string[] = [];
  for (let row = rows.before(rows.end); row; row = rows.before(row.line)) out.unshift(name(row));
  return out;
}

describe('lines', () => {
  it('pages in any order, overlapping or not, make one log', () => {
    const lines = new Lines();
    for (const [from, to] of [
      [10, 15],
      [1, 5],
      [3, 12],
      [14, 20],
    ] as const)
      lines.put(run(from, to), from, to);
    const rows = new Rows(lines, NO_FOLDS, 1, 20);
    expect(walk(rows)).toEqual(run(1, 20).map((made) => String(made.line)));
    expect(walkBack(rows)).toEqual(walk(rows));
    expect(lines.size.records).toBe(19);
  });

  it('lines that were not fetched are unknown', () => {
    const lines = new Lines();
    lines.put(run(3, 5), 3, 5);
    const rows = new Rows(lines, NO_FOLDS, 1, 7);
    const expected = ['unknown 1-1', 'unknown 2-2', '3', '4', 'unknown 5-5', 'unknown 6-6'];
    expect(walk(rows)).toEqual(expected);
    expect(walkBack(rows)).toEqual(expected);
  });

  it('lines missing on the server are a gap', () => {
    const lines = new Lines();
    lines.put([record(3), record(6)], 1, 9);
    const rows = new Rows(lines, NO_FOLDS, 1, 9);
    const expected = ['gap 1-2', '3', 'gap 4-5', '6', 'gap 7-8'];
    expect(walk(rows)).toEqual(expected);
    expect(walkBack(rows)).toEqual(expected);
  });

  it('a filter hides other lines and fetches unknown ones', () => {
    const lines = new Lines('stderr');
    lines.put([record(1), record(2, 'e', { stream: 'stderr' }), record(3)], 1, 4);
    const rows = new Rows(lines, NO_FOLDS, 1, 9);
    expect(walk(rows)).toEqual(['2', 'unknown 4-8']);
    expect(walkBack(rows)).toEqual(['2', 'unknown 4-8']);
  });

  it('a continuation joins its row across pages', () => {
    const parts = [
      record(1, 'name', { eol: false }),
      record(2, '? ', { cont: true, eol: false }),
      record(3, 'ana', { cont: true }),
      record(4),
    ];
    for (const cut of [1, 2, 3, 4]) {
      const lines = new Lines();
      lines.put(parts.slice(cut), cut + 1, 5);
      lines.put(parts.slice(0, cut), 1, cut + 1);
      const rows = new Rows(lines, NO_FOLDS, 1, 5);
      expect(walk(rows)).toEqual(['1', '4']);
      expect(walkBack(rows)).toEqual(['1', '4']);
      expect(name(rows.at(3) as Row)).toBe('1');
      expect(lines.row(parts[0] as LogRecord).join('')).toBe('name? ana');
    }
  });

  it('pieces of a very long line stay separate rows', () => {
    const lines = new Lines();
    const piece = (line: number): LogRecord => record(line, 'x'.repeat(65_536), { cont: line > 1, eol: false });
    lines.put([piece(1), piece(2), piece(3)], 1, 4);
    expect(walk(new Rows(lines, NO_FOLDS, 1, 4))).toEqual(['1', '2', '3']);
  });

  it('a line of another stream prevents joining', () => {
    const lines = new Lines();
    lines.put([record(1, 'a', { eol: false }), record(2, 'e', { stream: 'stderr' }), record(3, 'b', { cont: true })], 1, 4);
    expect(walk(new Rows(lines, NO_FOLDS, 1, 4))).toEqual(['1', '2', '3']);
  });

  it('live lines are appended and distant pages dropped', () => {
    const lines = new Lines(undefined, { records: 1_000, chars: 1_000_000 });
    for (let line = 1; line < 5_000; line += 10) {
      lines.append(run(line, line + 10), line, line + 10);
      lines.evict(line);
    }
    expect(lines.size.records).toBeLessThanOrEqual(1_300);
    expect(lines.covers(4_999)).toBe(true);
    expect(lines.covers(1)).toBe(false);
    lines.truncate(4_800);
    expect(lines.covers(4_999)).toBe(false);
  });
});

describe('folds', () => {
  it('rank and line convert both ways across folds', () => {
    const folds = Folds.of([
      { from: 5, to: 8 },
      { from: 7, to: 9 },
      { from: 20, to: 30 },
      { from: 1, to: 2 },
    ]);
    const shown = Array.from({ length: 40 }, (_, index) => index + 1).filter((line) => !folds.hides(line));
    shown.forEach((line, rank) => {
      expect(folds.rank(line)).toBe(rank);
      expect(folds.lineAt(rank)).toBe(line);
    });
    expect(folds.rank(25)).toBe(folds.rank(30));
  });
});

describe('groups', () => {
  const ended = { live: false, failed: false };
  const groupsOf = (...texts: string[]): Groups => {
    const groups = new Groups();
    texts.forEach((text, index) => {
      const marker = markerOf(index + 1, text);
      if (marker) groups.add(marker);
    });
    return groups;
  };
  const shown = (groups: Groups, end: number, outcome = ended): number[] => {
    const folds = groups.folds(end, outcome);
    return Array.from({ length: end - 1 }, (_, index) => index + 1).filter((line) => !folds.hides(line));
  };

  it('a group is closed, and its end is not shown', () => {
    const groups = groupsOf('a', '::group::Build', 'b', 'c', '::endgroup::', 'd');
    expect(shown(groups, 7)).toEqual([1, 2, 6]);
    groups.toggle(groups.at(2) as never, ended);
    expect(shown(groups, 7)).toEqual([1, 2, 3, 4, 6]);
  });

  it('nested, unmatched and unclosed groups are handled', () => {
    const groups = groupsOf(
      '::endgroup::',
      '::group::a',
      '::group::b',
      'x',
      '::endgroup::',
      '::endgroup::',
      '::endgroup::',
      '::group::open',
      'y',
    );
    expect(groups.all().map((group) => [group.line, group.end, group.depth])).toEqual([
      [2, 7, 0],
      [3, 6, 1],
      [8, undefined, 0],
    ]);
    expect(shown(groups, 10)).toEqual([1, 2, 7, 8, 9]);
  });

  it('headings end each other; --- is closed, +++ open, ~~~ quiet', () => {
    const groups = groupsOf('--- one', 'a', '+++ two', 'b', '~~~ three', 'c');
    expect(shown(groups, 7)).toEqual([1, 3, 4, 5]);
    expect(groups.at(5)?.kind).toBe('quiet');
  });

  it('a heading can be opened from inside', () => {
    expect(shown(groupsOf('--- one', 'a', '^^^ +++', 'b'), 5)).toEqual([1, 2, 4]);
  });

  it('a diff and a line of dashes are not headings', () => {
    expect(groupsOf('--- a/file', '+++ b/file', '@@ -1 +1 @@', '---', '----------', '+++').all()).toEqual([]);
  });

  it('the last group is open while live or after a failure', () => {
    const texts = ['--- one', 'a', '--- two', 'b'];
    expect(shown(groupsOf(...texts), 5)).toEqual([1, 3]);
    expect(shown(groupsOf(...texts), 5, { live: true, failed: false })).toEqual([1, 3, 4]);
    expect(shown(groupsOf(...texts, '### runvoy: exit code 1'), 6, { live: false, failed: true })).toEqual([1, 3, 4, 5]);
  });

  it('a platform line is outside all groups', () => {
    expect(shown(groupsOf('--- one', 'a', '### runvoy: exit code 0'), 4)).toEqual([1, 3]);
  });

  it('selected lines are revealed', () => {
    const groups = groupsOf('::group::a', '::group::b', 'x', '::endgroup::', '::endgroup::');
    expect(groups.reveal(3, 4, ended)).toBe(true);
    expect(shown(groups, 6)).toEqual([1, 2, 3]);
    expect(groups.reveal(3, 4, ended)).toBe(false);
  });

  it('a title is plain and has a maximum length', () => {
    expect(markerOf(1, `--- \u001b[33mTests\u001b[0m`)).toMatchObject({ title: 'Tests' });
    expect(markerOf(1, `::group::${'x'.repeat(5_000)}`)).toMatchObject({ title: 'x'.repeat(300) });
  });

  it('rows walk over what is folded in both directions', () => {
    const lines = new Lines();
    lines.put(run(1, 11), 1, 11);
    const rows = new Rows(
      lines,
      Folds.of([
        { from: 3, to: 6 },
        { from: 9, to: 11 },
      ]),
      1,
      11,
    );
    expect(walk(rows)).toEqual(['1', '2', '6', '7', '8']);
    expect(walkBack(rows)).toEqual(['1', '2', '6', '7', '8']);
    expect(name(rows.at(4) as Row)).toBe('2');
    expect(rows.count).toBe(5);
  });
});
