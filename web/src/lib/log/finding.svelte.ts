// The search field's half of searching: one search at a time, its count, what went wrong with it, and where the current hit is.
import { finder, type Needle } from './highlight';
import type { Stream } from './record';
import { Search, type Hits } from './search';
import { LogError, type LogSource } from './source';

const NO_HITS: Hits = { total: 0, atLeast: false, rank: 0, line: undefined };

/** What a search has to know of the viewer, and tells it. */
export interface FindingPlace {
  source: LogSource;
  stream(): Stream | undefined;
  /** The line after the log's last one. */
  end(): number;
  /** The line at the top of the screen. */
  line(): number;
  onHit(line: number): void;
  onChange(): void;
}

export class Finding {
  hits = $state.raw<Hits>(NO_HITS);
  isBusy = $state(false);
  problem = $state('');
  isActive = $state(false);
  /** What to mark in the lines. */
  pattern: RegExp | undefined;
  private search: Search | undefined;
  private recounting = false;

  constructor(private readonly place: FindingPlace) {}

  stop(): void {
    this.search?.stop();
  }

  /** Looks for something in the whole log, from the screen on; for nothing where there is nothing to look for. */
  async find(needle: Needle | undefined): Promise<void> {
    this.stop();
    this.hits = NO_HITS;
    this.problem = '';
    this.pattern = finder(needle);
    this.isActive = needle !== undefined && needle.text !== '';
    this.search = needle && this.isActive ? new Search(this.place.source, needle, this.place.stream(), () => this.place.end()) : undefined;
    this.place.onChange();
    const line = this.place.line();
    await this.visit((search) => search.start(line));
  }

  /** Looks for the same anew, for another filter. */
  again(): void {
    const needle = this.search?.needle;
    if (needle) void this.find(needle);
  }

  async next(): Promise<void> {
    await this.visit((search) => search.next(this.hits.line ?? this.place.line() - 1));
  }

  async previous(): Promise<void> {
    await this.visit((search) => search.previous(this.hits.line ?? this.place.line()));
  }

  /** Counts anew where the log has grown. */
  async recount(): Promise<void> {
    const search = this.search;
    if (!search || this.recounting || this.isBusy) return;
    this.recounting = true;
    try {
      const hits = await search.recount();
      if (search === this.search) this.hits = hits;
    } catch {
      // The count stays as it was; the next one may come through.
    }
    this.recounting = false;
  }

  private async visit(go: (search: Search) => Promise<Hits>): Promise<void> {
    const search = this.search;
    if (!search) {
      this.isBusy = false;
      return;
    }
    this.isBusy = true;
    try {
      const hits = await go(search);
      if (search !== this.search) return;
      this.hits = hits;
      if (hits.line !== undefined) this.place.onHit(hits.line);
      this.place.onChange();
    } catch (error) {
      if (search === this.search && error instanceof LogError) this.problem = error.message;
    } finally {
      if (search === this.search) this.isBusy = false;
    }
  }
}
