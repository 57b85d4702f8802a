// Searching the whole log on the server: how many lines match, which of them is the current one,
// and the next and previous. Matches are read in pages around the current position; their rank
// comes from the server's count of the matches after them.
import { escapeRegex, type Needle } from './highlight';
import type { Stream } from './record';
import type { LogSource, SearchPage } from './source';

const PAGE = 1_000;
const FIRST_REACH = 1_000;

export interface Hits {
  /** How many lines match. */
  total: number;
  /** There may be more. */
  atLeast: boolean;
  /** The current one, counted from 1; 0 where none was visited yet or its rank is not known. */
  rank: number;
  /** Its line. */
  line: number | undefined;
}

/** Neighbouring hits: no line between the first and `to` is missing. */
interface Run {
  from: number;
  to: number;
  lines: number[];
  /** How many hits there are before the first of these. */
  before: number;
}

export class Search {
  private hits: Hits = { total: 0, atLeast: false, rank: 0, line: undefined };
  private run: Run | undefined;
  /** Where the log ended when its hits were last counted. */
  private countedTo = 0;
  private readonly abort = new AbortController();

  constructor(
    private readonly source: LogSource,
    readonly needle: Needle,
    private readonly stream: Stream | undefined,
    /** The line after the log's last one, at any time. */
    private readonly end: () => number,
  ) {}

  get state(): Hits {
    return this.hits;
  }

  stop(): void {
    this.abort.abort();
  }

  /** Counts the hits of the whole log and goes to the first one at or after a line, or else to the first of all. */
  async start(line: number): Promise<Hits> {
    this.run = await this.count(PAGE);
    return this.hits.total === 0 ? this.hits : this.next(line - 1);
  }

  /** Goes to the first hit behind a line; from the last one to the first. */
  async next(line: number): Promise<Hits> {
    let found = this.behind(line);
    if (found === undefined && !this.knows(line + 1)) {
      this.run = await this.runFrom(line + 1);
      found = this.behind(line);
    }
    if (found === undefined && this.hits.total > 0 && line >= 1) {
      if (!this.knows(1)) this.run = await this.count(PAGE);
      found = this.behind(0);
    }
    return this.visit(found);
  }

  /** Goes to the last hit before a line; from the first one to the last. */
  async previous(line: number): Promise<Hits> {
    let found = await this.before(line);
    if (found === undefined && this.hits.total > 0) found = await this.before(this.end());
    return this.visit(found);
  }

  /** Counts again where the log has grown. */
  async recount(): Promise<Hits> {
    if (this.end() > this.countedTo && !this.hits.atLeast) await this.count(1);
    return this.hits;
  }

  private visit(line: number | undefined): Hits {
    if (line === undefined) return this.hits;
    const index = this.run?.lines.indexOf(line) ?? -1;
    const rank = this.run && index >= 0 && !this.hits.atLeast ? this.run.before + index + 1 : 0;
    this.hits = { ...this.hits, rank, line };
    return this.hits;
  }

  private knows(line: number): boolean {
    return this.run !== undefined && this.run.from <= line && line < this.run.to;
  }

  /** The first known hit behind a line. */
  private behind(line: number): number | undefined {
    return this.knows(line + 1) ? this.run?.lines.find((hit) => hit > line) : undefined;
  }

  /** The last hit before a line. There is no searching backwards: pages are read from ever farther before it. */
  private async before(line: number): Promise<number | undefined> {
    for (let reach = FIRST_REACH; ; reach *= 8) {
      if (this.run && this.run.from < line && this.run.to >= line) {
        const found = this.run.lines.findLast((hit) => hit < line);
        if (found !== undefined || this.run.from <= 1) return found;
      }
      const from = Math.max(1, line - reach);
      this.run = await this.runFrom(from);
      // More hits than one page holds: on to the last page before the line.
      while (this.run.to < line) this.run = await this.runFrom(this.run.to);
      const found = this.run.lines.findLast((hit) => hit < line);
      if (found !== undefined || from <= 1) return found;
    }
  }

  /** Counts all hits and has the first of them. */
  private async count(limit: number): Promise<Run> {
    const end = this.end();
    const page = await this.page(1, limit);
    this.countedTo = end;
    // What the signed link's route says is no count of all.
    this.hits = { ...this.hits, total: Math.max(page.total, this.source.canSearch ? 0 : this.hits.total), atLeast: page.atLeast };
    return { from: 1, to: page.nextLine ?? end, lines: page.lines, before: 0 };
  }

  private async runFrom(from: number): Promise<Run> {
    if (from <= 1) return this.count(PAGE);
    // The rank of a hit is what all hits are more than those from it on: both counted at the same length of the log.
    await this.recount();
    const end = this.end();
    const page = await this.page(from, PAGE);
    // What was not counted to the end gives no rank.
    if (page.atLeast) this.hits = { ...this.hits, atLeast: true };
    return { from, to: page.nextLine ?? Math.max(end, from), lines: page.lines, before: Math.max(0, this.hits.total - page.total) };
  }

  private page(fromLine: number, limit: number): Promise<SearchPage> {
    const { text, regex, matchCase } = this.needle;
    // A signed link finds plain text only, as it is written.
    const asRegex = this.source.canSearch && (regex || !matchCase);
    const body = !regex && asRegex ? escapeRegex(text) : text;
    const query = { text: asRegex && !matchCase ? `(?i)${body}` : body, regex: asRegex, fromLine, limit, stream: this.stream };
    return this.source.search(query, this.abort.signal);
  }
}
