// The colour of a status. The classes are in style/tones.css.

export type Tone = 'good' | 'bad' | 'busy' | 'warn' | 'quiet';

const TONES: Record<string, Tone> = {
  SUCCEEDED: 'good',
  COMPLETED: 'good',
  HEALTHY: 'good',
  OK: 'good',
  FAILED: 'bad',
  FAIL: 'bad',
  CRITICAL: 'bad',
  STARTING: 'busy',
  RUNNING: 'busy',
  TERMINATING: 'warn',
  STOPPED: 'warn',
  CANCELLED: 'warn',
  WARNING: 'warn',
  WARN: 'warn',
  OVERTIME: 'warn',
};

/** The tone of a status; an unknown status is quiet. */
export function tone(word: string): Tone {
  return TONES[word.toUpperCase()] ?? 'quiet';
}
