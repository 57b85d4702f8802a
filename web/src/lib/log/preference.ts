// What somebody chose for all logs: timestamps and wrapping.
import { keep, kept } from '../kept';
import { TIME_STYLES, type TimeStyle } from './timestamp';

export interface Preference {
  times: TimeStyle;
  wrap: boolean;
}

const KEY = 'runvoy.log';

export function readPreference(): Preference {
  const preference: Preference = { times: 'off', wrap: true };
  try {
    const chosen = JSON.parse(kept(KEY) ?? '{}') as Partial<Preference>;
    if (TIME_STYLES.includes(chosen.times as TimeStyle)) preference.times = chosen.times as TimeStyle;
    if (typeof chosen.wrap === 'boolean') preference.wrap = chosen.wrap;
  } catch {
    // Somebody else's text under this name.
  }
  return preference;
}

export function keepPreference(preference: Preference): void {
  keep(KEY, JSON.stringify(preference));
}
