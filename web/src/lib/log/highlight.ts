// Marks what was searched for in the spans of a line. The server finds lines; this only shows where in a line the match is, so where the
// browser's regular expressions differ from the server's the line is marked without it.
import type { Span } from './ansi/span';

export interface Needle {
  text: string;
  regex: boolean;
  matchCase: boolean;
}

/** What is looked for in a line's text; nothing where the browser cannot, or should not, look for it itself. */
export function finder(needle: Needle | undefined): RegExp | undefined {
  if (!needle || needle.text === '') return undefined;
  const source = needle.regex ? needle.text : escapeRegex(needle.text);
  // A repeated repetition may take for ever here, though never on the server.
  if (needle.regex && /[+*}][^()]*\)[+*{?]/.test(source)) return undefined;
  try {
    return new RegExp(source, needle.matchCase ? 'gu' : 'giu');
  } catch {
    return undefined;
  }
}

/** A text as a regular expression that finds just it, for the browser and the server alike. */
export function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** The spans with the matches cut out and marked. */
export function highlight(spans: readonly Span[], pattern: RegExp | undefined): readonly Span[] {
  if (!pattern) return spans;
  const text = spans.map((span) => span.text).join('');
  const found: [number, number][] = [];
  for (const match of text.matchAll(pattern)) {
    if (match[0].length > 0) found.push([match.index, match.index + match[0].length]);
    if (found.length >= 100) break;
  }
  if (found.length === 0) return spans;
  const out: Span[] = [];
  let at = 0;
  for (const span of spans) {
    cut(span, at, found, out);
    at += span.text.length;
  }
  return out;
}

function cut(span: Span, at: number, found: readonly [number, number][], out: Span[]): void {
  const end = at + span.text.length;
  let from = at;
  const push = (to: number, marked: boolean): void => {
    if (to > from)
      out.push({ ...span, text: span.text.slice(from - at, to - at), classes: marked ? `${span.classes} log-match`.trim() : span.classes });
    from = Math.max(from, to);
  };
  for (const [start, stop] of found) {
    if (stop <= at || start >= end) continue;
    push(Math.max(start, at), false);
    push(Math.min(stop, end), true);
  }
  push(end, false);
}
