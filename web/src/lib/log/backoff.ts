// How long to wait before another try: doubling from a quarter of a second to ten seconds, spread so that many pages do not come at once.

const FIRST_MS = 250;
const LONGEST_MS = 10_000;

/** The wait after so many failures in a row. */
export function backoffMs(failures: number, random: () => number = Math.random): number {
  const full = Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), LONGEST_MS);
  return full * (0.75 + random() * 0.5);
}
