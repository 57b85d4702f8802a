// The stored choices for all logs: timestamps and wrapping.
import { readItem, writeItem } from '../storage';
import { TIME_STYLES, type TimeStyle } from './timestamp';

export interface Preference {
  times: TimeStyle;
  wrap: boolean;
}

const KEY = 'runvoy.log';

export function readPreference(): Preference {
  const preference: Preference = { times: 'off', wrap: true };
  try {
    const chosen = JSON.parse(readItem(KEY) ?? '{}') as Partial<Preference>;
    if (TIME_STYLES.includes(chosen.times as TimeStyle)) preference.times = chosen.times as TimeStyle;
    if (typeof chosen.wrap === 'boolean') preference.wrap = chosen.wrap;
  } catch {
    // Not a text of this page: use the defaults.
  }
  return preference;
}

export function keepPreference(preference: Preference): void {
  writeItem(KEY, JSON.stringify(preference));
}
