// Line permalinks: `#L120` and `#L120-L140`.

/** Lines from one to another, both included. */
export interface LineRange {
  from: number;
  to: number;
}

/** The lines that an address names at its end, if it names any. */
export function parseLineRange(address: string): LineRange | null {
  const found = /(?:^|[#?&/])L([1-9]\d{0,14})(?:-L?([1-9]\d{0,14}))?$/.exec(address);
  if (!found) return null;
  const [one, other] = [Number(found[1]), Number(found[2] ?? found[1])];
  return { from: Math.min(one, other), to: Math.max(one, other) };
}

/** `L120-L140`, `L120`, or nothing. */
export function formatLineRange(range: LineRange | null): string {
  if (!range) return '';
  return range.from === range.to ? `L${range.from}` : `L${range.from}-L${range.to}`;
}

/** What is selected after a click on a line's number; with shift the lines from the earlier choice to here. */
export function chooseLine(range: LineRange | null, line: number, extend: boolean): LineRange | null {
  if (extend && range) return { from: Math.min(range.from, line), to: Math.max(range.from, line) };
  return range && range.from === line && range.to === line ? null : { from: line, to: line };
}

/** The lines that a user typed: `120`, `L120`, `120-140`. */
export function typedLineRange(text: string): LineRange | null {
  const trimmed = text.trim().replace(/^#/, '');
  return parseLineRange(/^\d/.test(trimmed) ? `L${trimmed}` : trimmed.toUpperCase());
}
