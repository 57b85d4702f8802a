// The marks that give a log its groups: `::group::`/`::endgroup::`, and headings `---`, `+++`, `~~~`. They are text like any other and
// change nothing but what is folded.
import { plainText } from './ansi/parser';

export type Marker =
  | { kind: 'group'; line: number; title: string }
  | { kind: 'end'; line: number }
  | { kind: 'heading'; line: number; title: string; style: 'closed' | 'open' | 'quiet' }
  | { kind: 'reopen'; line: number }
  /** A line of the platform itself stands outside all groups. */
  | { kind: 'platform'; line: number };

/** The same for the server's search. */
export const MARKER_PATTERN = '^(::group::|::endgroup::|(---|\\+\\+\\+|~~~) \\S|\\^\\^\\^ \\+\\+\\+|### runvoy: )';

const HEADINGS = { '---': 'closed', '+++': 'open', '~~~': 'quiet' } as const;
const FIRST = /^[:\-+~^#]/;

/** The mark that a line is, if it is one. */
export function markerOf(line: number, text: string): Marker | undefined {
  if (!FIRST.test(text)) return undefined;
  if (text.startsWith('::group::')) return { kind: 'group', line, title: titleOf(text.slice(9)) };
  if (text.startsWith('::endgroup::')) return { kind: 'end', line };
  if (text.startsWith('^^^ +++')) return { kind: 'reopen', line };
  if (text.startsWith('### runvoy: ')) return { kind: 'platform', line };
  const heading = /^(---|\+\+\+|~~~) (?=\S)/.exec(text);
  const style = HEADINGS[heading?.[1] as keyof typeof HEADINGS];
  return style ? { kind: 'heading', line, title: titleOf(text.slice(4)), style } : undefined;
}

/** A title is plain: whatever colours it has would be cut off with the rest of a long one. */
function titleOf(text: string): string {
  return (
    plainText([text.slice(0, 1_000)])
      .trim()
      .slice(0, 300) || 'group'
  );
}

/** Without the file names of a unified diff, which look like two headings in a row. */
export function withoutDiffs(markers: readonly Marker[]): Marker[] {
  const isDiff = (first: Marker | undefined, second: Marker | undefined): boolean =>
    first?.kind === 'heading' &&
    second?.kind === 'heading' &&
    first.style === 'closed' &&
    second.style === 'open' &&
    second.line === first.line + 1;
  return markers.filter((marker, index) => !isDiff(marker, markers[index + 1]) && !isDiff(markers[index - 1], marker));
}
