// The log viewer: opens a log, keeps the position at its end or where the user scrolled, takes live
// lines, and runs the commands of the toolbar and the keyboard shortcuts. Its fields are the state
// that the components show.
import type { Drawn, Look } from './drawn';
import { Finding } from './finding.svelte';
import { Follower, type FollowState } from './follow';
import type { Group } from './groups';
import { chooseLine, type LineRange } from './permalink';
import { keepPreference, readPreference } from './preference';
import type { Stream } from './record';
import type { ScreenParts } from './screen';
import { LogError, type LogSource } from './source';
import { Stage, type StageOwner } from './stage';
import { LogStore } from './store';
import type { TimeStyle } from './timestamp';

const ANNOUNCE_MS = 5_000;
const RECOUNT_MS = 5_000;

export interface LogViewOptions {
  source: LogSource;
  onstatus: (status: unknown) => void;
  onselect: (range: LineRange | null) => void;
}

export class LogView implements StageOwner {
  rows = $state.raw<readonly Drawn[]>([]);
  /** The line after the log's last one. */
  nextLine = $state(1);
  isOpen = $state(false);
  state = $state<FollowState>('connecting');
  problem = $state.raw<LogError | undefined>(undefined);
  following = $state(true);
  /** Lines that arrived since the user left the end, or paused. */
  newLines = $state(0);
  paused = $state(false);
  cleared = $state(false);
  stream = $state<Stream | undefined>(undefined);
  times = $state<TimeStyle>('off');
  wrap = $state(true);
  chosen = $state.raw<LineRange | null>(null);
  hasGroups = $state(false);
  announcement = $state('');
  startedAt = $state<number | undefined>(undefined);

  readonly store: LogStore;
  readonly finding: Finding;
  readonly stage: Stage;
  private follower: Follower | undefined;
  private failed = false;
  private leftAt = 1;
  private announcedTo = 1;
  private readonly timers: ReturnType<typeof setInterval>[] = [];

  constructor(private readonly options: LogViewOptions) {
    const preference = readPreference();
    this.times = preference.times;
    this.wrap = preference.wrap;
    this.store = new LogStore(options.source, () => this.stage?.invalidate());
    this.finding = new Finding({
      source: options.source,
      stream: () => this.stream,
      end: () => this.store.nextLine,
      line: () => this.stage.line,
      onHit: (line) => this.reveal(line, line),
      onChange: () => this.stage.invalidate(),
    });
    this.stage = new Stage(this.store, this);
  }

  get source(): LogSource {
    return this.options.source;
  }

  /** Begins, on these elements. */
  attach(parts: ScreenParts, rowHeight: number, charWidth: number): () => void {
    this.stage.attach(parts, rowHeight, charWidth);
    const online = (): void => this.retry();
    globalThis.addEventListener('online', online);
    this.timers.push(
      setInterval(() => this.announce(), ANNOUNCE_MS),
      setInterval(() => void this.recount(), RECOUNT_MS),
    );
    void this.open();
    return () => {
      globalThis.removeEventListener('online', online);
      this.close();
    };
  }

  async open(): Promise<void> {
    try {
      const head = await this.store.open();
      this.problem = undefined;
      this.isOpen = true;
      this.announcedTo = this.leftAt = head.nextLine;
      if (this.chosen) this.reveal(this.chosen.from, this.chosen.to);
      this.render();
      this.follow(head);
      await this.store.loadGroups();
    } catch (error) {
      if (error instanceof LogError) this.fail(error);
    }
  }

  close(): void {
    for (const timer of this.timers) clearInterval(timer);
    this.follower?.stop();
    this.finding.stop();
    this.store.close();
    this.stage.close();
  }

  /** Retries now, after an error. */
  retry(): void {
    this.store.retry();
    this.follower?.retryNow();
    if (!this.isOpen) void this.open();
  }

  setFailed(failed: boolean): void {
    this.failed = failed;
    this.store.setOutcome({ live: this.isLive, failed });
  }

  toEnd(): void {
    this.resume();
    this.following = true;
    this.render();
  }

  toStart(): void {
    this.leave();
    this.stage.toLine(1);
    this.render();
  }

  toggleFollow(): void {
    if (this.following) this.leave();
    else this.toEnd();
  }

  togglePause(): void {
    if (this.paused) {
      this.toEnd();
    } else {
      this.paused = true;
      this.leave();
      this.store.pause();
    }
  }

  toggleClear(): void {
    if (this.cleared) this.store.unclear();
    else this.store.clear();
    this.cleared = this.store.isCleared;
    this.toEnd();
  }

  setWrap(wrap: boolean): void {
    this.wrap = wrap;
    this.keep();
  }

  setTimes(times: TimeStyle): void {
    this.times = times;
    this.keep();
  }

  setStream(stream: Stream | undefined): void {
    const line = this.stage.line;
    this.stream = stream;
    this.store.filter(stream);
    this.stage.restyle();
    if (!this.following) this.stage.toLine(line);
    this.render();
    this.finding.again();
  }

  toggleGroup(group: Group): void {
    if (this.following && !this.store.isOpen(group)) this.leave();
    this.store.toggle(group);
  }

  setAllGroups(open: boolean): void {
    this.store.setAllGroups(open);
  }

  more(line: number): void {
    this.leave();
    this.stage.more(line);
  }

  /** A click on a line's number. */
  choose(line: number, extend: boolean): void {
    this.chosen = chooseLine(this.chosen, line, extend);
    this.leave();
    this.options.onselect(this.chosen);
    this.render();
  }

  /** Selects lines, scrolls to them and reports them; `null` clears the selection. */
  pointAt(range: LineRange | null): void {
    this.goTo(range);
    this.options.onselect(range);
  }

  /** Lines that the address named. */
  goTo(range: LineRange | null): void {
    this.chosen = range;
    if (range && this.isOpen) this.reveal(range.from, range.to);
    this.stage.invalidate();
  }

  get wraps(): boolean {
    return this.wrap;
  }

  get look(): Omit<Look, 'start'> & { start: number | undefined } {
    const { hits, pattern } = this.finding;
    return { times: this.times, start: this.startedAt, chosen: this.chosen, hit: hits.line, pattern };
  }

  onDraw(rows: readonly Drawn[]): void {
    this.rows = rows;
  }

  onDrawn(): void {
    this.nextLine = this.store.nextLine;
    this.newLines = this.following ? 0 : Math.max(0, this.store.nextLine - this.leftAt);
    this.hasGroups = this.store.groups.all().length > 0;
    if (this.state !== 'reconnecting' && this.state !== 'failed' && this.store.problem !== this.problem) this.problem = this.store.problem;
  }

  onMove(pixels: number): void {
    if (pixels < 0 && !this.stage.isAtEnd) this.leave();
    else if (pixels > 0 && !this.paused && this.stage.isAtEnd) this.following = true;
    this.render();
  }

  private get isLive(): boolean {
    return this.state !== 'ended' && this.state !== 'failed';
  }

  private follow(head: Parameters<Follower['start']>[0]): void {
    this.follower = new Follower(
      { source: this.source, from: this.store.nextLine },
      {
        onBatch: (batch) => this.store.append(batch),
        onGrow: (nextLine) => this.store.grow(nextLine),
        onRewind: (nextLine) => this.store.rewind(nextLine),
        onStatus: (status) => this.options.onstatus(status),
        onState: (state, problem) => {
          this.state = state;
          this.problem = problem;
          this.store.setOutcome({ live: this.isLive, failed: this.failed });
          this.stage.invalidate();
        },
      },
    );
    this.follower.start(head);
  }

  private fail(error: LogError): void {
    this.problem = error;
    if (!error.isRetryable) this.state = 'failed';
    else this.timers.push(setTimeout(() => void this.open(), 2_000));
  }

  private async recount(): Promise<void> {
    if (this.isLive) await this.finding.recount();
  }

  /** Scrolls to lines and opens the groups around them. */
  private reveal(from: number, to: number): void {
    this.leave();
    this.store.reveal(from, to);
    this.cleared = this.store.isCleared;
    this.stage.toLine(from, 'third');
  }

  private resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.store.resume();
  }

  /** No longer at the end. */
  private leave(): void {
    if (this.following) this.leftAt = this.store.nextLine;
    this.following = false;
  }

  private keep(): void {
    keepPreference({ times: this.times, wrap: this.wrap });
    this.stage.restyle();
    this.render();
  }

  private render(): void {
    if (this.isOpen) this.stage.render();
  }

  private announce(): void {
    const added = this.store.nextLine - this.announcedTo;
    this.announcedTo = this.store.nextLine;
    if (added > 0) this.announcement = added === 1 ? '1 new line' : `${added} new lines`;
  }
}
