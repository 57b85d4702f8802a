// The groups of a log, made from its marks: what nests in what, where each ends, and which are open. Marks arrive in any order, from the
// server's search for them and from live output.
import { Folds, type Stretch } from './folds';
import { withoutDiffs, type Marker } from './marker';

export interface Group {
  /** The line of its mark. */
  readonly line: number;
  readonly title: string;
  readonly kind: 'group' | 'closed' | 'open' | 'quiet';
  readonly depth: number;
  /** The line after its last one; `undefined` while nothing has ended it. */
  end: number | undefined;
  /** A mark inside asked for it to be open. */
  reopened: boolean;
}

/** What else decides whether a group is open. */
export interface Outcome {
  /** More output may come. */
  live: boolean;
  /** The execution failed: its last group has the reason. */
  failed: boolean;
}

/** Beyond so many marks a log is shown without folding the rest. */
const MAX_MARKERS = 20_000;
const MAX_DEPTH = 8;

export class Groups {
  private readonly markers = new Map<number, Marker>();
  private readonly chosen = new Map<number, boolean>();
  private list: Group[] | undefined;
  private byLine = new Map<number, Group>();
  private ends = new Set<number>();

  get isFull(): boolean {
    return this.markers.size >= MAX_MARKERS;
  }

  /** Takes a mark; one that is known already changes nothing. */
  add(marker: Marker): boolean {
    if (this.markers.has(marker.line) || this.isFull) return false;
    this.markers.set(marker.line, marker);
    this.list = undefined;
    return true;
  }

  /** Forgets the marks from this line on. */
  truncate(line: number): void {
    for (const at of [...this.markers.keys()]) if (at >= line) this.markers.delete(at);
    this.list = undefined;
  }

  /** All groups in the order of their marks. */
  all(): readonly Group[] {
    if (!this.list) this.build();
    return this.list ?? [];
  }

  /** The group whose mark stands on a line. */
  at(line: number): Group | undefined {
    this.all();
    return this.byLine.get(line);
  }

  isOpen(group: Group, outcome: Outcome): boolean {
    const chosen = this.chosen.get(group.line);
    if (chosen !== undefined) return chosen;
    if (group.kind === 'open' || group.reopened) return true;
    const unended = group.end === undefined;
    if (unended && (outcome.live || group.kind === 'group')) return true;
    return outcome.failed && this.isLast(group);
  }

  toggle(group: Group, outcome: Outcome): void {
    this.chosen.set(group.line, !this.isOpen(group, outcome));
  }

  /** How many lines it has, its marks not counted; `undefined` while it grows. */
  sizeOf(group: Group): number | undefined {
    if (group.end === undefined) return undefined;
    return group.end - group.line - 1 - (this.ends.has(group.end - 1) ? 1 : 0);
  }

  setAll(open: boolean): void {
    for (const group of this.all()) this.chosen.set(group.line, open);
  }

  /** Opens every group around these lines; whether any was closed. */
  reveal(from: number, to: number, outcome: Outcome): boolean {
    let opened = false;
    for (const group of this.all()) {
      const around = group.line < to && from < (group.end ?? Number.POSITIVE_INFINITY) && group.line !== from;
      if (around && !this.isOpen(group, outcome)) {
        this.chosen.set(group.line, true);
        opened = true;
      }
    }
    return opened;
  }

  /** What is hidden: the inside of closed groups, and the marks that only end one. */
  folds(end: number, outcome: Outcome): Folds {
    const hidden: Stretch[] = [];
    for (const group of this.all()) {
      if (!this.isOpen(group, outcome)) hidden.push({ from: group.line + 1, to: group.end ?? end });
    }
    for (const line of this.ends) hidden.push({ from: line, to: line + 1 });
    return Folds.of(hidden);
  }

  /** The last group, and those it lies in. */
  private isLast(group: Group): boolean {
    const last = this.list?.at(-1);
    return last !== undefined && group.line <= last.line && (group.end ?? Number.POSITIVE_INFINITY) > last.line;
  }

  private build(): void {
    const sorted = withoutDiffs([...this.markers.values()].sort((a, b) => a.line - b.line));
    const groups: Group[] = [];
    const open: Group[] = [];
    const ends = new Set<number>();
    const close = (line: number): void => {
      for (const group of open.splice(0)) group.end = line;
    };
    for (const marker of sorted) {
      const top = open.at(-1);
      if (marker.kind === 'platform') {
        close(marker.line);
      } else if (marker.kind === 'reopen') {
        if (top) top.reopened = true;
        ends.add(marker.line);
      } else if (marker.kind === 'end') {
        // An end without a beginning is only left out where it ends something; otherwise it is the command's own text.
        if (top?.kind !== 'group') continue;
        top.end = marker.line + 1;
        open.pop();
        ends.add(marker.line);
      } else {
        if (marker.kind === 'heading') close(marker.line);
        else if (open.length >= MAX_DEPTH) continue;
        const kind = marker.kind === 'group' ? 'group' : marker.style;
        const group: Group = { line: marker.line, title: marker.title, kind, depth: open.length, end: undefined, reopened: false };
        groups.push(group);
        open.push(group);
      }
    }
    this.list = groups;
    this.ends = ends;
    this.byLine = new Map(groups.map((group) => [group.line, group]));
  }
}
