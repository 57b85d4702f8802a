// The viewer's inputs and outputs: frames, responses, addresses, times, copies, downloads.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { backoffMs } from '../../src/lib/log/backoff';
import { decodeBatch } from '../../src/lib/log/batch';
import { textOfLines } from '../../src/lib/log/copy';
import { plainLines } from '../../src/lib/log/download';
import { chooseLine, formatLineRange, parseLineRange, typedLineRange } from '../../src/lib/log/permalink';
import { keepPreference, readPreference } from '../../src/lib/log/preference';
import { httpLogSource, LogError } from '../../src/lib/log/source';
import { fullTime, timeText } from '../../src/lib/log/timestamp';
import { FakeLog } from './fake';

describe('batches', () => {
  const frame = (records: number[], first = 41n): ArrayBuffer => {
    const bytes = new Uint8Array(21 + records.length);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(0, first, true);
    view.setUint32(8, 3, true);
    view.setUint8(12, 1);
    view.setBigInt64(13, 1_767_450_139_640n, true);
    bytes.set(records, 21);
    return bytes.buffer;
  };
  const HI = [0, 0b1001, 2, 104, 105];

  it('are read as the server writes them', () => {
    const batch = decodeBatch(frame([...HI, 200, 1, 0b0100, 1, 33, 3, 0b1010, 0]));
    expect([batch.firstLine, batch.nextLine]).toEqual([41, 44]);
    expect(batch.records(41)).toEqual([
      { line: 41, attempt: 3, late: true, at: 1_767_450_139_640, stream: 'stderr', cont: false, eol: true, text: 'hi' },
      { line: 42, attempt: 3, late: true, at: 1_767_450_139_740, stream: 'stdout', cont: true, eol: false, text: '!' },
      { line: 43, attempt: 3, late: true, at: 1_767_450_139_738, stream: 'platform', cont: false, eol: true, text: '' },
    ]);
    expect(batch.records(43).map((record) => record.line)).toEqual([43]);
    expect(batch.records(99)).toEqual([]);
  });

  it('invalid UTF-8 is replaced as on the server', () => {
    expect(decodeBatch(frame([0, 8, 3, 0xff, 0x41, 0xe9])).records(41)[0]?.text).toBe('\ufffdA\ufffd');
    expect(decodeBatch(frame([0, 8, 3, 0xef, 0xbb, 0xbf])).records(41)[0]?.text).toBe('\ufeff');
  });

  it('a damaged frame is detected at any byte', () => {
    const good = new Uint8Array(frame(HI));
    for (let length = 0; length < good.length; length += 1) {
      if (length === 21) continue;
      expect(() => decodeBatch(good.slice(0, length).buffer), `cut at ${length}`).toThrow('damaged');
    }
    expect(() => decodeBatch(frame([0, 0b0011, 0]))).toThrow('damaged');
    expect(() => decodeBatch(frame(Array<number>(11).fill(0xff)))).toThrow('damaged');
  });
});

describe('the HTTP source', () => {
  const answer = (body: unknown, init: ResponseInit = {}) => {
    const asked: [string, RequestInit | undefined][] = [];
    const fetch = (async (url: string, options?: RequestInit) => {
      asked.push([url, options]);
      return new Response(typeof body === 'string' ? body : JSON.stringify(body), init);
    }) as typeof globalThis.fetch;
    return {
      asked,
      source: (canSearch = true) =>
        httpLogSource({ endpoint: 'https://runvoy.example/', executionId: 'abc', headers: () => ({ 'X-API-Key': 'k' }), fetch, canSearch }),
    };
  };
  const event = { event_id: '7', timestamp: 5, message: 'hi', line: 7 };

  it('asks for the head without lines, and for pages by number and stream', async () => {
    const { asked, source } = answer({ execution_id: 'abc', status: 'RUNNING', events: [event], next_line: 8, websocket_url: 'wss://public.example/runvoy/api/v1/executions/abc/stream?token=t' });
    // The page's own way to the server, which its policy allows, and the ticket.
    expect((await source().head()).websocketUrl).toBe('wss://runvoy.example/api/v1/executions/abc/stream?token=t');
    const page = await source().page(7, 10, 'stderr');
    expect([page.nextLine, page.records[0]]).toEqual([
      8,
      { line: 7, at: 5, stream: 'stdout', attempt: 0, cont: false, eol: true, late: false, text: 'hi' },
    ]);
    expect(asked.map(([url]) => url)).toEqual([
      'https://runvoy.example/api/v1/executions/abc/logs?tail=0',
      'https://runvoy.example/api/v1/executions/abc/logs?from_line=7&limit=10&stream=stderr',
    ]);
    expect(asked[0]?.[1]?.headers).toEqual({ 'X-API-Key': 'k' });
  });

  it('sends no cookie and follows no redirect', async () => {
    const { asked, source } = answer({ execution_id: 'abc', status: 'RUNNING', events: [], next_line: 1 });
    await source().head();
    await source().download('raw');
    expect(asked.map(([, init]) => [init?.redirect, init?.credentials])).toEqual([['error', 'omit'], ['error', 'omit']]);
  });

  it('searches on the server, or by log with a signed link', async () => {
    const query = { text: 'a b', regex: true, fromLine: 3, limit: 1, stream: undefined };
    const whole = answer({ total: 9, hits: [{ line: 4, message: 'a b' }], next_line: 5 });
    expect(await whole.source().search(query)).toEqual({ total: 9, atLeast: false, lines: [4], texts: ['a b'], nextLine: 5 });
    expect(whole.asked[0]?.[0]).toContain('/logs/search?from_line=3&limit=1&q=a+b&regex=true');
    const slow = [
      { total: 0, hits: [], next_line: 6, complete: false },
      { total: 2, hits: [{ line: 8, message: 'a b' }], next_line: 9, complete: false },
    ];
    const asked: string[] = [];
    const fetch = (async (url: string) => {
      asked.push(url);
      return new Response(JSON.stringify(slow.shift()));
    }) as typeof globalThis.fetch;
    const stopped = httpLogSource({ endpoint: 'https://runvoy.example/', executionId: 'abc', headers: () => ({}), fetch, canSearch: true });
    expect(await stopped.search(query)).toEqual({ total: 2, atLeast: true, lines: [8], texts: ['a b'], nextLine: 9 });
    expect(asked.map((url) => new URL(url).searchParams.get('from_line'))).toEqual(['3', '6']);
    const link = answer({ status: 'RUNNING', events: [event], next_line: 8 });
    expect(await link.source(false).search(query)).toEqual({ total: 1, atLeast: true, lines: [7], texts: ['hi'], nextLine: 8 });
    expect(link.asked[0]?.[0]).toContain('/logs?from_line=3&limit=1&search=a+b');
  });

  it('reports the reason and whether to retry', async () => {
    const refused = answer({ error: 'the log was removed by retention', code: 'NOT_FOUND', details: 'kept 30 days' }, { status: 404 });
    await expect(refused.source().head()).rejects.toMatchObject({
      message: 'the log was removed by retention: kept 30 days',
      status: 404,
      isRetryable: false,
    });
    const busy = answer('<html>', { status: 503, headers: { 'Retry-After': '7' } });
    await expect(busy.source().head()).rejects.toMatchObject({ status: 503, retryAfter: 7, isRetryable: true });
    const away = httpLogSource({ endpoint: '', executionId: 'a', headers: () => ({}), fetch: () => Promise.reject(new TypeError('x')) });
    await expect(away.head()).rejects.toEqual(new LogError('server unreachable', 0));
  });
});

describe('permalinks', () => {
  it.each([
    ['#L120', { from: 120, to: 120 }],
    ['#L120-L140', { from: 120, to: 140 }],
    ['#L140-120', { from: 120, to: 140 }],
    ['#/executions/abc?tab=log&L7', { from: 7, to: 7 }],
    ['#token=abc&L7', { from: 7, to: 7 }],
    ['#L0', null],
    ['#L', null],
    ['#XL5', null],
    ['', null],
    ['#L99999999999999999999', null],
  ])('%s', (address, range) => expect(parseLineRange(address)).toEqual(range));

  it('are written as they are read', () => {
    for (const range of [
      { from: 1, to: 1 },
      { from: 3, to: 9 },
    ])
      expect(parseLineRange(`#${formatLineRange(range)}`)).toEqual(range);
    expect(formatLineRange(null)).toBe('');
  });

  it('a click selects, shift extends, a second click clears', () => {
    expect(chooseLine(null, 5, false)).toEqual({ from: 5, to: 5 });
    expect(chooseLine({ from: 5, to: 5 }, 9, true)).toEqual({ from: 5, to: 9 });
    expect(chooseLine({ from: 5, to: 9 }, 2, true)).toEqual({ from: 2, to: 5 });
    expect(chooseLine({ from: 5, to: 5 }, 5, false)).toBeNull();
    expect(chooseLine(null, 5, true)).toEqual({ from: 5, to: 5 });
  });

  it('can be typed in many ways', () => {
    for (const text of ['120-140', 'L120-L140', ' l120-140 ', '#L120-L140']) expect(typedLineRange(text)).toEqual({ from: 120, to: 140 });
    expect(typedLineRange('abc')).toBeNull();
  });
});

describe('times', () => {
  const at = Date.UTC(2026, 10, 16, 8, 5, 3, 42);
  it('come in four styles', () => {
    expect(timeText('off', at, 0)).toBe('');
    expect(timeText('utc', at, 0)).toBe('08:05:03.042Z');
    expect(timeText('local', at, 0)).toMatch(/^\d\d:\d\d:03\.042$/);
    expect(timeText('relative', at, at - 3_661_005)).toBe('+1:01:01.005');
    expect(timeText('relative', at, at + 1_500)).toBe('-0:00:01.500');
    expect(fullTime('utc', at)).toBe('2026-11-16T08:05:03.042Z');
    expect(new Date(fullTime('local', at)).getTime()).toBe(at);
  });

  it('a row without a time has none', () => expect([timeText('utc', Number.NaN, 0), fullTime('utc', Number.NaN)]).toEqual(['', '']));
});

describe('preferences', () => {
  const none = { times: 'off', wrap: true };
  afterEach(() => void vi.unstubAllGlobals());

  it('are stored, and survive invalid stored text', () => {
    let text: string | null = null;
    vi.stubGlobal('localStorage', { getItem: () => text, setItem: (_key: string, value: string) => (text = value) });
    keepPreference({ times: 'utc', wrap: false });
    expect(readPreference()).toEqual({ times: 'utc', wrap: false });
    for (text of [null, '', 'null', '[]', '{"times":"x","wrap":1}', '{']) expect(readPreference()).toEqual(none);
  });
});

describe('copies and downloads', () => {
  it('copied lines are plain and complete', async () => {
    const parts = [
      {},
      { text: '\u001b[31mred\u001b[0m' },
      { text: 'long ', eol: false },
      { text: 'line', cont: true },
      { text: '10%\r100%' },
      { text: 'after' },
    ];
    const log = new FakeLog(5, (line) => parts[line] ?? {});
    expect(await textOfLines(log, 1, 4, undefined)).toBe('red\nlong line\n100%');
  });

  it('a plain download has no escapes across chunks', async () => {
    const text = 'a\u001b[31mred\u001b[0m\n10%\r100%\r\nünï\nlast\u001b[1m bold';
    for (const size of [1, 2, 3, 7, 1_000]) {
      const bytes = new TextEncoder().encode(text);
      const chunks = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      expect(await new Response(chunks.pipeThrough(plainLines())).text()).toBe('ared\n100%\nünï\nlast bold');
    }
  });
});

it('waits double from 250 ms to 10 s', () => {
  expect([1, 2, 3, 6, 7, 50].map((failures) => backoffMs(failures, () => 0.5))).toEqual([250, 500, 1_000, 8_000, 10_000, 10_000]);
});
