// Times beside log lines: none, local, UTC, or since the execution started. All forms of one choice are equally wide.

export type TimeStyle = 'off' | 'local' | 'utc' | 'relative';

export const TIME_STYLES: readonly TimeStyle[] = ['off', 'local', 'utc', 'relative'];

const two = (value: number): string => String(value).padStart(2, '0');
const three = (value: number): string => String(value).padStart(3, '0');

/** The text beside a line. */
export function timeText(style: TimeStyle, at: number, start: number): string {
  if (style === 'off' || !Number.isFinite(at)) return '';
  if (style === 'relative') return relative(at - start);
  const date = new Date(at);
  if (style === 'utc') return `${date.toISOString().slice(11, 23)}Z`;
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${three(date.getMilliseconds())}`;
}

/** The whole date, for a title. */
export function fullTime(style: TimeStyle, at: number): string {
  if (!Number.isFinite(at)) return '';
  const date = new Date(at);
  if (style !== 'local') return date.toISOString();
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${day}T${timeText('local', at, 0)}${zone}`;
}

/** `+0:00:01.250`; lines of the platform may come before the start. */
function relative(ms: number): string {
  const sign = ms < 0 ? '-' : '+';
  const whole = Math.abs(ms);
  const [hours, minutes, seconds] = [Math.floor(whole / 3_600_000), Math.floor(whole / 60_000) % 60, Math.floor(whole / 1_000) % 60];
  return `${sign}${hours}:${two(minutes)}:${two(seconds)}.${three(whole % 1_000)}`;
}
