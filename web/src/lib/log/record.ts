// One record of a log as the viewer keeps it: the wire's LogEvent with its defaults filled in.
import type { components } from '../api/schema';

export type LogEvent = components['schemas']['LogEvent'];
export type Stream = 'stdout' | 'stderr' | 'platform';

export interface LogRecord {
  /** Its number, counted from 1 over all attempts. */
  readonly line: number;
  /** Unix milliseconds. */
  readonly at: number;
  readonly stream: Stream;
  readonly attempt: number;
  /** It continues the line before it of the same stream. */
  readonly cont: boolean;
  /** A newline ended it. */
  readonly eol: boolean;
  readonly late: boolean;
  /** The text; lossy where the bytes are not UTF-8. */
  readonly text: string;
}

/** A record from the wire; `undefined` where it has no usable number. */
export function recordOf(event: LogEvent): LogRecord | undefined {
  const line = event.line ?? 0;
  if (!Number.isSafeInteger(line) || line < 1) return undefined;
  return {
    line,
    at: event.timestamp,
    stream: event.stream === 'stderr' || event.stream === 'platform' ? event.stream : 'stdout',
    attempt: event.attempt ?? 0,
    cont: event.cont ?? false,
    eol: event.eol ?? true,
    late: event.late ?? false,
    text: event.message,
  };
}

/** The records of these events, without what is no record. */
export function recordsOf(events: readonly LogEvent[] | null | undefined): LogRecord[] {
  return (events ?? []).flatMap((event) => recordOf(event) ?? []);
}
