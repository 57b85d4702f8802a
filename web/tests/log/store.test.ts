// A log as the viewer sees it: fetched where it is visible, live at its end, folded, filtered, paused and cleared.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { batchOf } from '../../src/lib/log/batch';
import type { Row, Rows } from '../../src/lib/log/rows';
import { LogError } from '../../src/lib/log/source';
import { LogStore } from '../../src/lib/log/store';
import { FakeLog, record, settle } from './fake';

const TEN_MILLION = 10_000_000;

async function open(log: FakeLog): Promise<LogStore> {
  const store = new LogStore(log, () => undefined);
  await store.open();
  return store;
}

function kinds(rows: Rows, from: number, count: number): string[] {
  const out: string[] = [];
  for (let row = rows.at(from); row && out.length < count; row = rows.after(row)) out.push(name(row));
  return out;
}

const name = (row: Row): string => (row.kind === 'line' ? `${row.line}` : `${row.kind} ${row.line}-${row.next - 1}`);

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe('a log of ten million lines', () => {
  it('opens with one request and no lines', async () => {
    const log = new FakeLog(TEN_MILLION);
    const store = await open(log);
    expect(log.asked).toEqual(['head']);
    expect(store.rows().count).toBe(TEN_MILLION);
  });

  it('any position is one page away', async () => {
    const log = new FakeLog(TEN_MILLION);
    const store = await open(log);
    store.want({ from: TEN_MILLION - 100, to: TEN_MILLION + 60, upwards: true });
    await settle();
    expect(kinds(store.rows(), TEN_MILLION - 1, 5)).toEqual([`${TEN_MILLION - 1}`, `${TEN_MILLION}`]);
    store.want({ from: 5_000_000, to: 5_000_100, upwards: false });
    await settle();
    expect(kinds(store.rows(), 5_000_000, 2)).toEqual(['5000000', '5000001']);
    expect(log.asked.length).toBeLessThanOrEqual(4);
  });

  it('only a window of it stays in memory', async () => {
    const log = new FakeLog(TEN_MILLION);
    const store = await open(log);
    for (let line = 1; line < TEN_MILLION; line += 50_021) {
      store.want({ from: line, to: line + 200, upwards: line % 2 === 0 });
      await settle();
    }
    expect(store.kept).toBeLessThanOrEqual(20_256);
  });

  it('the newest request wins', async () => {
    const log = new FakeLog(TEN_MILLION);
    const store = await open(log);
    for (let line = 1; line < TEN_MILLION; line += 100_000) store.want({ from: line, to: line + 100, upwards: false });
    await settle();
    expect(log.asked.filter((asked) => asked.startsWith('page')).length).toBeLessThanOrEqual(2);
  });
});

describe('fetching', () => {
  it('long lines are fetched in smaller pages', async () => {
    const log = new FakeLog(10_000, () => ({ text: 'x'.repeat(65_536) }));
    const store = await open(log);
    store.want({ from: 1, to: 300, upwards: false });
    await settle();
    expect(log.asked.at(-1)).toMatch(/\+8$/);
  });

  it('a gap is not requested again', async () => {
    const log = new FakeLog(20);
    for (const line of [1, 2, 9, 10]) log.lost.add(line);
    const store = await open(log);
    store.want({ from: 1, to: 21, upwards: false });
    await settle();
    expect(kinds(store.rows(), 1, 9)).toEqual(['gap 1-2', '3', '4', '5', '6', '7', '8', 'gap 9-10', '11']);
    const asked = log.asked.length;
    store.want({ from: 1, to: 21, upwards: false });
    await settle();
    expect(log.asked).toHaveLength(asked);
  });

  it('an unreachable server is retried and the error shown', async () => {
    const log = new FakeLog(100);
    const store = await open(log);
    log.failing = new LogError('away', 503);
    store.want({ from: 1, to: 50, upwards: false });
    await settle();
    expect(store.problem?.message).toBe('away');
    log.failing = undefined;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.problem).toBeUndefined();
    expect(kinds(store.rows(), 1, 1)).toEqual(['1']);
  });

  it('a refused request is not retried', async () => {
    const log = new FakeLog(100);
    const store = await open(log);
    log.failing = new LogError('gone', 404);
    store.want({ from: 1, to: 50, upwards: false });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(log.asked).toHaveLength(2);
  });
});

describe('live', () => {
  it('live lines need no request', async () => {
    const log = new FakeLog(3);
    const store = await open(log);
    store.append(batchOf([record(4), record(5)], 4));
    store.append(batchOf([record(5), record(6)], 5));
    expect(kinds(store.rows(), 4, 9)).toEqual(['4', '5', '6']);
    expect(log.asked).toEqual(['head']);
  });

  it('of a burst the end is kept and the rest fetchable', async () => {
    const log = new FakeLog(50_000);
    const store = new LogStore(log, () => undefined);
    store.append({
      firstLine: 1,
      nextLine: 50_001,
      records: (from) => Array.from({ length: 50_001 - from }, (_, index) => record(from + index)),
    });
    expect(store.kept).toBe(2_000);
    store.want({ from: 10, to: 20, upwards: false });
    await settle();
    expect(kinds(store.rows(), 10, 2)).toEqual(['10', '11']);
  });

  it('visible lines stay during a burst', async () => {
    const log = new FakeLog(1_000_000);
    const store = new LogStore(log, () => undefined);
    store.append({
      firstLine: 1,
      nextLine: 101,
      records: (from) => Array.from({ length: 101 - from }, (_, index) => record(from + index)),
    });
    store.want({ from: 1, to: 60, upwards: false });
    for (let line = 101; line < 100_000; line += 1_000) {
      store.append({
        firstLine: line,
        nextLine: line + 1_000,
        records: (from) => Array.from({ length: line + 1_000 - from }, (_, index) => record(from + index)),
      });
      expect(kinds(store.rows(), 1, 2)).toEqual(['1', '2']);
    }
    expect(store.kept).toBeLessThanOrEqual(22_000);
  });

  it('lines missing in the stream are fetched', async () => {
    const log = new FakeLog(3);
    const store = await open(log);
    log.count = 9;
    store.append(batchOf([record(8), record(9)], 8));
    expect(kinds(store.rows(), 4, 2)).toEqual(['unknown 4-4', 'unknown 5-5']);
    store.want({ from: 1, to: 10, upwards: false });
    await settle();
    expect(kinds(store.rows(), 1, 20)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9']);
  });

  it('a pause holds lines back and resume shows them', async () => {
    const store = await open(new FakeLog(0));
    store.append(batchOf([record(1)], 1));
    store.pause();
    store.append(batchOf([record(2), record(3)], 2));
    expect([store.rows().count, store.nextLine]).toEqual([1, 4]);
    store.resume();
    expect(kinds(store.rows(), 1, 9)).toEqual(['1', '2', '3']);
  });

  it('after a clear only new lines are shown', async () => {
    const store = await open(new FakeLog(0));
    store.append(batchOf([record(1), record(2)], 1));
    store.clear();
    expect(store.rows().count).toBe(0);
    store.append(batchOf([record(3)], 3));
    expect(kinds(store.rows(), 1, 9)).toEqual(['3']);
    store.reveal(1, 1);
    expect(kinds(store.rows(), 1, 9)).toEqual(['1', '2', '3']);
  });

  it('a truncated log is shown truncated', async () => {
    const store = await open(new FakeLog(0));
    store.append(batchOf([record(1), record(2), record(3)], 1));
    store.rewind(2);
    expect(store.rows().count).toBe(1);
    store.append(batchOf([record(2, 'anew')], 2));
    expect(store.nextLine).toBe(3);
  });
});

describe('filter', () => {
  const sparse = (): FakeLog => new FakeLog(1_000_000, (line) => ({ stream: line % 100_000 === 0 ? 'stderr' : 'stdout' }));

  it('shows one stream across the log', async () => {
    const store = await open(sparse());
    store.filter('stderr');
    store.want({ from: 1, to: 1_000_001, upwards: false });
    await settle();
    expect(kinds(store.rows(), 1, 20)).toEqual(Array.from({ length: 10 }, (_, index) => `${(index + 1) * 100_000}`));
    store.filter(undefined);
    expect(kinds(store.rows(), 1, 1)).toEqual(['unknown 1-1']);
  });

  it('fetches it backwards from the end', async () => {
    const log = sparse();
    const store = await open(log);
    store.filter('stderr');
    for (let round = 0; round < 20; round += 1) {
      store.want({ from: 900_000, to: 1_000_001, upwards: true });
      await settle();
    }
    const rows = store.rows();
    const last = rows.before(1_000_001) as Row;
    expect([name(last), name(rows.before(last.line) as Row)]).toEqual(['1000000', '900000']);
  });

  it('adds live lines of its stream', async () => {
    const store = await open(new FakeLog(0));
    store.filter('stderr');
    store.append(batchOf([record(1), record(2, 'e', { stream: 'stderr' })], 1));
    expect(kinds(store.rows(), 1, 9)).toEqual(['2']);
  });
});

describe('groups', () => {
  const text = (line: number): string => (line === 10 ? '::group::middle' : line === 90 ? '::endgroup::' : `line ${line}`);

  it('are found in lines that were not fetched', async () => {
    const store = await open(new FakeLog(100, (line) => ({ text: text(line) })));
    store.setOutcome({ live: false, failed: false });
    await store.loadGroups();
    expect(store.rows().count).toBe(100 - 80);
    store.reveal(50, 50);
    expect(store.rows().count).toBe(100 - 1);
  });

  it('come with live lines', async () => {
    const store = await open(new FakeLog(0));
    store.append(batchOf([record(1, '::group::a'), record(2), record(3, '::endgroup::'), record(4)], 1));
    expect(kinds(store.rows(), 1, 9)).toEqual(['1', '4']);
  });

  it('do not apply while a filter is on', async () => {
    const log = new FakeLog(100, (line) => ({ text: text(line), stream: 'stderr' }));
    log.canSearch = false;
    const store = await open(log);
    await store.loadGroups();
    expect(store.rows().count).toBe(100);
  });
});
