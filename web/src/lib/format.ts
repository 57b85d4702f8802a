// Formatting of times, durations, costs, statuses, ids and commands.

/** A duration in its two largest units: `350 ms`, `4 s`, `2 min 5 s`, `3 h 20 min`, `2 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const units: [number, string, number, string][] = [
    [60, 'min', 1, 's'],
    [3_600, 'h', 60, 'min'],
    [86_400, 'd', 3_600, 'h'],
  ];
  const [large, name, small, smallName] = units.findLast(([size]) => seconds >= size) ?? units[0]!;
  const rest = Math.floor((seconds % large) / small);
  return rest ? `${Math.floor(seconds / large)} ${name} ${rest} ${smallName}` : `${Math.floor(seconds / large)} ${name}`;
}

/** How long ago, in words. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1_000));
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  if (seconds < 30 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return new Date(at).toLocaleDateString(undefined, { year: 'numeric', month: 'short', day: 'numeric' });
}

/** A time of day with its date, in the reader's own zone. */
export function moment(at: number): string {
  return new Date(at).toLocaleString(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
}

/** Dollars, with as many digits as a small cost needs. */
export function money(usd: number): string {
  if (usd === 0) return '$0';
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`;
}

/** The end of an id: its random part, and enough for the command line. */
export function shortId(id: string): string {
  return id.slice(-8);
}

/** A command on one line. */
export function oneLine(command: string, args?: readonly string[] | null): string {
  return escapeBidi([command, ...(args ?? [])].join(' ').replace(/\s+/g, ' ').trim());
}

/**
 * A text whose bidirectional control characters are shown instead of obeyed; obeyed, they make a
 * command read as another one.
 */
export function escapeBidi(text: string): string {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => codeName(mark.charCodeAt(0)));
}

/** The code point of a character without a glyph. */
export function codeName(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** A text with a capital letter first. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Labels that differ from the status code. */
const LABELS: Record<string, string> = { PENDING: 'Queued', TERMINATING: 'Stopping', OK: 'OK', WARN: 'Warning', FAIL: 'Failed' };

/** The label of a status: `RUNNING` is Running, `PENDING` is Queued. */
export function statusLabel(status: string): string {
  return LABELS[status.toUpperCase()] ?? capitalize(status.toLowerCase());
}

/** A count with its noun. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}
