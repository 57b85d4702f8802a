// Follows a growing log: over a WebSocket, or else by polling every five seconds. The line number
// is the one cursor: what a new connection sends again is dropped, and what it leaves out the store
// fetches. Every try begins with the question where the log stands, which also brings a fresh
// ticket; so a lost connection, an aged ticket, a restarted server and an ended execution are all
// the same to it.
import { ENDED } from '../api/shapes';
import { backoffMs } from './backoff';
import { batchOf, decodeBatch, type Batch } from './batch';
import { recordOf, type LogEvent } from './record';
import { LogError, type LogHead, type LogSource } from './source';

/** `failed`: it cannot be followed, and trying again would not help. */
export type FollowState = 'connecting' | 'live' | 'polling' | 'reconnecting' | 'ended' | 'failed';

/** The events of a follower. */
export interface FollowListener {
  onBatch(batch: Batch): void;
  /** The log is this long now; its lines have yet to be fetched. */
  onGrow(nextLine: number): void;
  /** The server has fewer lines than it has told of. */
  onRewind(nextLine: number): void;
  onState(state: FollowState, problem: LogError | undefined): void;
  /** The execution's status as the server pushes it. */
  onStatus(status: unknown): void;
}

/** The part of a WebSocket that the follower uses. */
export interface Socket {
  binaryType: string;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: (() => void) | null;
  close(code?: number): void;
}

export interface FollowOptions {
  source: LogSource;
  /** The line to go on with. */
  from: number;
  connect?: ((url: string) => Socket) | undefined;
}

const POLL_MS = 5_000;
/** How long to poll before trying a WebSocket again. */
const UPGRADE_AGAIN_MS = 30_000;
const OPEN_WITHIN_MS = 10_000;
/** After this long without data the connection is checked: browsers do not expose pings. */
const QUIET_MS = 30_000;

export class Follower {
  private next: number;
  private state: FollowState = 'connecting';
  private stopped = false;
  private failures = 0;
  private upgradeAt = 0;
  private socket: Socket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private readonly abort = new AbortController();
  private readonly connect: ((url: string) => Socket) | undefined;

  constructor(
    private readonly options: FollowOptions,
    private readonly listener: FollowListener,
  ) {
    this.next = options.from;
    this.connect = 'connect' in options ? options.connect : browserSocket();
  }

  /** Begins; with a head that is known already it saves asking for one. */
  start(head?: LogHead): void {
    if (head) this.proceed(head);
    else void this.ask();
  }

  /** Retries at once. */
  retryNow(): void {
    if (this.timer === undefined || this.stopped) return;
    this.later(0);
  }

  stop(): void {
    this.stopped = true;
    this.abort.abort();
    clearTimeout(this.timer);
    this.drop();
  }

  private async ask(): Promise<void> {
    this.timer = undefined;
    let head: LogHead;
    try {
      head = await this.options.source.head(this.abort.signal);
    } catch (error) {
      if (!this.stopped) this.failed(error instanceof LogError ? error : new LogError('server unreachable', 0));
      return;
    }
    if (!this.stopped) this.proceed(head);
  }

  private proceed(head: LogHead): void {
    if (head.nextLine < this.next) {
      this.next = head.nextLine;
      this.listener.onRewind(head.nextLine);
    }
    if (ENDED.includes(head.status)) {
      this.grow(head.nextLine);
      this.end();
      return;
    }
    const url = head.websocketUrl && this.connect && Date.now() >= this.upgradeAt ? this.resume(head.websocketUrl) : undefined;
    if (url === undefined) {
      this.grow(head.nextLine);
      this.poll();
      return;
    }
    this.open(url, head);
  }

  /** The stream's address with the cursor, in batches, and with the status. */
  private resume(address: string): string | undefined {
    try {
      const url = new URL(address);
      url.searchParams.set('batch', 'true');
      url.searchParams.set('events', 'status');
      if (this.next > 1) url.searchParams.set('last_event_id', String(this.next - 1));
      return url.href;
    } catch {
      return undefined;
    }
  }

  private open(url: string, head: LogHead): void {
    let socket: Socket;
    try {
      socket = this.connect?.(url) as Socket;
    } catch {
      // A policy of the page or the browser forbids it.
      this.refused(head);
      return;
    }
    this.socket = socket;
    socket.binaryType = 'arraybuffer';
    let opened = false;
    this.guard(OPEN_WITHIN_MS, () => {
      this.drop();
      this.refused(head);
    });
    socket.onopen = () => {
      opened = true;
      this.tell('live');
      this.guard(QUIET_MS, () => void this.look());
    };
    socket.onmessage = (event) => {
      this.failures = 0;
      this.guard(QUIET_MS, () => void this.look());
      this.hear(event.data);
    };
    socket.onclose = () => {
      this.drop();
      if (this.stopped || this.state === 'ended') return;
      // The server answers but lets nothing through: a proxy without WebSockets, or a stream too many.
      if (!opened) this.refused(head);
      else this.again();
    };
    socket.onerror = null;
  }

  private hear(data: unknown): void {
    try {
      if (data instanceof ArrayBuffer) this.take(decodeBatch(data));
      else this.hearText(JSON.parse(String(data)) as LogEvent & { type?: string; reason?: string });
    } catch {
      // A damaged frame: everything from the cursor on is asked for again.
      this.drop();
      this.again();
    }
  }

  private hearText(frame: LogEvent & { type?: string; reason?: string }): void {
    if (frame.type === 'status') {
      this.listener.onStatus(frame);
    } else if (frame.type === 'disconnect') {
      this.drop();
      if (frame.reason === 'execution_completed') this.end();
      else this.again();
    } else if (frame.type === undefined) {
      const record = recordOf(frame);
      if (record) this.take(batchOf([record], record.line));
    }
  }

  private take(batch: Batch): void {
    if (batch.nextLine <= this.next) return;
    this.next = batch.nextLine;
    this.listener.onBatch(batch);
  }

  private grow(nextLine: number): void {
    if (nextLine <= this.next) return;
    this.next = nextLine;
    this.listener.onGrow(nextLine);
  }

  /** Checks whether a quiet connection is still alive. */
  private async look(): Promise<void> {
    const quiet = this.socket;
    let head: LogHead | undefined;
    try {
      head = await this.options.source.head(this.abort.signal);
    } catch {
      head = undefined;
    }
    if (this.stopped || this.socket !== quiet || !quiet) return;
    if (head && head.nextLine <= this.next && !ENDED.includes(head.status)) {
      this.guard(QUIET_MS, () => void this.look());
      return;
    }
    this.drop();
    if (head) this.proceed(head);
    else this.again();
  }

  private refused(head: LogHead): void {
    this.upgradeAt = Date.now() + UPGRADE_AGAIN_MS;
    this.grow(head.nextLine);
    this.poll();
  }

  private poll(): void {
    this.failures = 0;
    this.tell('polling');
    this.later(POLL_MS);
  }

  private again(): void {
    this.failures += 1;
    this.tell('reconnecting');
    this.later(backoffMs(this.failures));
  }

  private failed(problem: LogError): void {
    if (!problem.isRetryable) {
      this.tell('failed', problem);
      return;
    }
    this.failures += 1;
    this.tell('reconnecting', problem);
    this.later(problem.retryAfter === undefined ? backoffMs(this.failures) : problem.retryAfter * 1_000);
  }

  private end(): void {
    this.drop();
    this.tell('ended');
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), ms);
  }

  private guard(ms: number, act: () => void): void {
    clearTimeout(this.watch);
    this.watch = setTimeout(act, ms);
  }

  private drop(): void {
    clearTimeout(this.watch);
    const socket = this.socket;
    this.socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  private tell(state: FollowState, problem?: LogError): void {
    if (state === this.state && problem === undefined) return;
    this.state = state;
    this.listener.onState(state, problem);
  }
}

function browserSocket(): ((url: string) => Socket) | undefined {
  return typeof WebSocket === 'undefined' ? undefined : (url) => new WebSocket(url) as unknown as Socket;
}
