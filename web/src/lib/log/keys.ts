// The keyboard shortcuts of the log viewer. They work while the log has the focus, and never
// together with Ctrl, Alt or Meta.
import { TIME_STYLES } from './timestamp';
import type { LogView } from './view.svelte';

/** The shortcuts that act outside the view. */
export interface KeyTargets {
  focusSearch(): void;
  showShortcuts(): void;
  copyChosen(): void;
}

type Act = (view: LogView, targets: KeyTargets) => void;

interface Key {
  keys: string[];
  what: string;
  act: Act[];
}

/** Each key with what it does; where there are two keys and two acts, in the same order. */
export const KEYS: readonly Key[] = [
  { keys: ['↓', 'j'], what: 'One line down', act: [(view) => view.stage.moveRows(1)] },
  { keys: ['↑', 'k'], what: 'One line up', act: [(view) => view.stage.moveRows(-1)] },
  {
    keys: ['PageDown', 'PageUp'],
    what: 'One screen down, up',
    act: [(view) => view.stage.moveScreens(1), (view) => view.stage.moveScreens(-1)],
  },
  { keys: ['Space'], what: 'One screen down', act: [(view) => view.stage.moveScreens(1)] },
  { keys: ['Home', 'g'], what: 'First line', act: [(view) => view.toStart()] },
  { keys: ['End', 'G'], what: 'Last line, and follow', act: [(view) => view.toEnd()] },
  { keys: ['f'], what: 'Follow on or off', act: [(view) => view.toggleFollow()] },
  { keys: ['p'], what: 'Pause: hold back new lines', act: [(view) => view.togglePause()] },
  { keys: ['/'], what: 'Search the whole log', act: [(_view, targets) => targets.focusSearch()] },
  {
    keys: ['n', 'N'],
    what: 'Next match, previous match',
    act: [(view) => void view.finding.next(), (view) => void view.finding.previous()],
  },
  { keys: ['w'], what: 'Wrap long lines', act: [(view) => view.setWrap(!view.wrap)] },
  { keys: ['t'], what: 'Timestamps: off, local, UTC, since start', act: [nextTimes] },
  { keys: ['s'], what: 'Streams: all, stdout, stderr', act: [nextStream] },
  { keys: ['o', 'O'], what: 'Expand, collapse all groups', act: [(view) => view.setAllGroups(true), (view) => view.setAllGroups(false)] },
  { keys: ['c'], what: 'Copy the selected lines', act: [(_view, targets) => targets.copyChosen()] },
  { keys: ['x'], what: 'Clear the screen, show all lines', act: [(view) => view.toggleClear()] },
  { keys: ['Escape'], what: 'Clear the selection', act: [(view) => view.pointAt(null)] },
  { keys: ['?'], what: 'Show this list', act: [(_view, targets) => targets.showShortcuts()] },
];

const NAMES: Record<string, string> = { '↓': 'ArrowDown', '↑': 'ArrowUp', Space: ' ' };

const ACTS = new Map<string, Act>(
  KEYS.flatMap(({ keys, act }) =>
    keys.flatMap((key, index): [string, Act][] => {
      const does = act[index] ?? act[0];
      return does ? [[NAMES[key] ?? key, does]] : [];
    }),
  ),
);

/** Does what a key asks for; whether it asked for anything. */
export function pressKey(event: KeyboardEvent, view: LogView, targets: KeyTargets): boolean {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'f') {
    // The browser's own search sees only the few rows that are drawn.
    targets.focusSearch();
    return true;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const act = ACTS.get(event.key);
  if (!act) return false;
  act(view, targets);
  return true;
}

function nextTimes(view: LogView): void {
  const next = TIME_STYLES[(TIME_STYLES.indexOf(view.times) + 1) % TIME_STYLES.length];
  if (next) view.setTimes(next);
}

function nextStream(view: LogView): void {
  view.setStream(view.stream === undefined ? 'stdout' : view.stream === 'stdout' ? 'stderr' : undefined);
}
