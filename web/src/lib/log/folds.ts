// Stretches of a log that are not shown, and the numbering of what is left: so a scroll bar stands for what can be seen, however many lines
// lie in folded groups. Pure arithmetic on line numbers.

/** Hidden lines, from `from` to before `to`. */
export interface Stretch {
  from: number;
  to: number;
}

export class Folds {
  /** How many lines are hidden before each stretch. */
  private readonly hiddenBefore: number[] = [];

  /** Stretches in any order; those that touch or overlap become one. */
  static of(stretches: readonly Stretch[]): Folds {
    const merged: Stretch[] = [];
    for (const stretch of [...stretches].sort((a, b) => a.from - b.from)) {
      const last = merged.at(-1);
      if (stretch.to <= stretch.from) continue;
      if (last && stretch.from <= last.to) last.to = Math.max(last.to, stretch.to);
      else merged.push({ ...stretch });
    }
    return new Folds(merged);
  }

  private constructor(private readonly stretches: readonly Stretch[]) {
    let hidden = 0;
    for (const stretch of stretches) {
      this.hiddenBefore.push(hidden);
      hidden += stretch.to - stretch.from;
    }
  }

  /** The stretch that hides a line. */
  hides(line: number): Stretch | undefined {
    const stretch = this.stretches[this.indexOf(line)];
    return stretch && line < stretch.to ? stretch : undefined;
  }

  /** How many lines before this one are shown. */
  rank(line: number): number {
    const index = this.indexOf(line);
    const stretch = this.stretches[index];
    if (!stretch) return line - 1;
    return line - 1 - (this.hiddenBefore[index] ?? 0) - (Math.min(line, stretch.to) - stretch.from);
  }

  /** The line before which so many are shown. */
  lineAt(rank: number): number {
    let [low, high] = [0, this.stretches.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const stretch = this.stretches[middle] as Stretch;
      if (stretch.from - 1 - (this.hiddenBefore[middle] ?? 0) <= rank) low = middle + 1;
      else high = middle;
    }
    const last = this.stretches[low - 1];
    return rank + 1 + (last ? (this.hiddenBefore[low - 1] ?? 0) + last.to - last.from : 0);
  }

  /** The index of the last stretch that begins at or before a line; -1 where none does. */
  private indexOf(line: number): number {
    let [low, high] = [0, this.stretches.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.stretches[middle]?.from ?? 0) <= line) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

export const NO_FOLDS = Folds.of([]);
