// Following a log through connection failures.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Batch } from '../../src/lib/log/batch';
import { Follower, type FollowState, type Socket } from '../../src/lib/log/follow';
import { LogError } from '../../src/lib/log/source';
import { FakeLog, settle } from './fake';

class FakeSocket implements Socket {
  static made: FakeSocket[] = [];
  binaryType = '';
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  closed = false;

  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }

  close(): void {
    this.closed = true;
  }

  line(line: number): void {
    this.onmessage?.({ data: JSON.stringify({ event_id: String(line), timestamp: line, message: `line ${line}`, line }) });
  }

  say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  break(code = 1006): void {
    this.onclose?.({ code, reason: '' });
  }
}

function follow(log: FakeLog, from = 1, connect: ((url: string) => Socket) | null = (url) => new FakeSocket(url)) {
  const seen = {
    lines: [] as number[],
    states: [] as FollowState[],
    grown: [] as number[],
    rewound: [] as number[],
    status: [] as unknown[],
  };
  const follower = new Follower(
    { source: log, from, connect: connect ?? undefined },
    {
      onBatch: (batch: Batch) =>
        seen.lines.push(...batch.records(seen.lines.length ? (seen.lines.at(-1) ?? 0) + 1 : batch.firstLine).map((record) => record.line)),
      onGrow: (nextLine) => seen.grown.push(nextLine),
      onRewind: (nextLine) => seen.rewound.push(nextLine),
      onState: (state) => seen.states.push(state),
      onStatus: (status) => seen.status.push(status),
    },
  );
  return { follower, seen };
}

const last = (): FakeSocket => FakeSocket.made.at(-1) as FakeSocket;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.made = [];
});
afterEach(() => vi.useRealTimers());

describe('over the WebSocket', () => {
  it('requests batches after its cursor and stops at the end', async () => {
    const { follower, seen } = follow(new FakeLog(5), 6);
    follower.start();
    await settle();
    expect(new URL(last().url).searchParams.get('last_event_id')).toBe('5');
    expect(new URL(last().url).searchParams.get('batch')).toBe('true');
    expect(new URL(last().url).searchParams.get('events')).toBe('status');
    expect(new URL(last().url).searchParams.get('token')).toBe('t');
    last().onopen?.();
    last().line(6);
    last().say({ type: 'status', status: 'SUCCEEDED' });
    last().line(7);
    last().say({ type: 'disconnect', reason: 'execution_completed' });
    expect(seen.lines).toEqual([6, 7]);
    expect(seen.states).toEqual(['live', 'ended']);
    expect(seen.status).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.made).toHaveLength(1);
  });

  it('twenty lost connections lose and repeat nothing', async () => {
    const log = new FakeLog(0);
    const { follower, seen } = follow(log);
    follower.start();
    await settle();
    for (let round = 0; round < 20; round += 1) {
      const socket = last();
      expect(Number(new URL(socket.url).searchParams.get('last_event_id') ?? 0)).toBe(seen.lines.length);
      socket.onopen?.();
      // The server sends one line again, as a careless one might.
      if (round > 0) socket.line(seen.lines.length);
      for (let count = 0; count < 3; count += 1) socket.line(seen.lines.length + 1);
      log.count = seen.lines.length;
      socket.break();
      expect(seen.states.at(-1)).toBe('reconnecting');
      await vi.advanceTimersByTimeAsync(400);
    }
    expect(seen.lines).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    follower.stop();
    expect(last().closed).toBe(true);
  });

  it('an unreachable server is retried with backoff', async () => {
    const log = new FakeLog(0);
    const { follower, seen } = follow(log);
    follower.start();
    await settle();
    last().onopen?.();
    last().line(1);
    log.count = 1;
    log.failing = new LogError('away', 0);
    last().break();
    const before = log.asked.length;
    await vi.advanceTimersByTimeAsync(60_000);
    const tries = log.asked.length - before;
    expect(tries).toBeGreaterThan(4);
    expect(tries).toBeLessThan(16);
    log.failing = undefined;
    follower.retryNow();
    await vi.advanceTimersByTimeAsync(1);
    last().onopen?.();
    expect(seen.states.at(-1)).toBe('live');
    follower.stop();
  });

  it('a revoked key stops it', async () => {
    const log = new FakeLog(0);
    const { follower, seen } = follow(log);
    follower.start();
    await settle();
    last().onopen?.();
    log.failing = new LogError('the key was revoked', 401);
    last().break(1008);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(seen.states).toEqual(['live', 'reconnecting', 'failed']);
    expect(FakeSocket.made).toHaveLength(1);
  });

  it('after a damaged frame it resumes from the cursor', async () => {
    const { follower, seen } = follow(new FakeLog(0));
    follower.start();
    await settle();
    last().onopen?.();
    last().line(1);
    last().onmessage?.({ data: new Uint8Array([1, 2, 3]).buffer });
    expect(seen.states.at(-1)).toBe('reconnecting');
    follower.stop();
  });

  it('an execution that ended without a connection is read to its end', async () => {
    const log = new FakeLog(3);
    const { follower, seen } = follow(log, 4);
    follower.start();
    await settle();
    last().onopen?.();
    log.count = 9;
    log.status = 'FAILED';
    last().break();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.grown).toEqual([10]);
    expect(seen.states.at(-1)).toBe('ended');
  });

  it('a silently dead connection is detected', async () => {
    const log = new FakeLog(0);
    const { follower, seen } = follow(log);
    follower.start();
    await settle();
    last().onopen?.();
    await vi.advanceTimersByTimeAsync(31_000);
    expect(FakeSocket.made).toHaveLength(1);
    log.count = 4;
    await vi.advanceTimersByTimeAsync(31_000);
    expect(FakeSocket.made).toHaveLength(2);
    expect(seen.states).toEqual(['live']);
    follower.stop();
  });

  it('a log that became shorter is reported', async () => {
    const log = new FakeLog(10);
    const { follower, seen } = follow(log, 11);
    follower.start();
    await settle();
    last().onopen?.();
    log.count = 7;
    last().break();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.rewound).toEqual([8]);
    expect(new URL(last().url).searchParams.get('last_event_id')).toBe('7');
    follower.stop();
  });
});

describe('without a WebSocket', () => {
  it('polls every five seconds', async () => {
    const log = new FakeLog(2);
    const { follower, seen } = follow(log, 1, null);
    follower.start();
    await settle();
    for (log.count = 3; log.count < 6; log.count += 1) await vi.advanceTimersByTimeAsync(5_000);
    expect(seen.grown).toEqual([3, 4, 5, 6]);
    expect(seen.states).toEqual(['polling']);
    log.status = 'STOPPED';
    await vi.advanceTimersByTimeAsync(5_000);
    expect(seen.states).toEqual(['polling', 'ended']);
  });

  it('polls where the upgrade is refused, then tries again', async () => {
    const log = new FakeLog(0);
    const { follower, seen } = follow(log);
    follower.start();
    await settle();
    last().break();
    expect(seen.states).toEqual(['polling']);
    await vi.advanceTimersByTimeAsync(25_000);
    expect(FakeSocket.made).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(FakeSocket.made).toHaveLength(2);
    last().onopen?.();
    expect(seen.states).toEqual(['polling', 'live']);
    follower.stop();
  });

  it('polls where no connection opens', async () => {
    const forbidden = follow(new FakeLog(0), 1, () => {
      throw new Error('forbidden');
    });
    forbidden.follower.start();
    await settle();
    expect(forbidden.seen.states).toEqual(['polling']);
    forbidden.follower.stop();
    const silent = follow(new FakeLog(0));
    silent.follower.start();
    await vi.advanceTimersByTimeAsync(10_001);
    expect(silent.seen.states).toEqual(['polling']);
    silent.follower.stop();
  });
});
