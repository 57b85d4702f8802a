// What somebody chose for all logs: timestamps and wrapping. A browser that keeps nothing only forgets.
import { TIME_STYLES, type TimeStyle } from './timestamp';

export interface Preference {
  times: TimeStyle;
  wrap: boolean;
}

const KEY = 'runvoy.log';

export function readPreference(storage: Storage | undefined): Preference {
  const preference: Preference = { times: 'off', wrap: true };
  try {
    const kept = JSON.parse(storage?.getItem(KEY) ?? '{}') as Partial<Preference>;
    if (TIME_STYLES.includes(kept.times as TimeStyle)) preference.times = kept.times as TimeStyle;
    if (typeof kept.wrap === 'boolean') preference.wrap = kept.wrap;
  } catch {
    // Somebody else's text under this name.
  }
  return preference;
}

export function keepPreference(storage: Storage | undefined, preference: Preference): void {
  try {
    storage?.setItem(KEY, JSON.stringify(preference));
  } catch {
    // A full or forbidden storage.
  }
}
