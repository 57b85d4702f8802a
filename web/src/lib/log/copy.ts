// Copies of log lines: the text as it is seen, without numbers, times and colours, a soft wrap no line end, and what was cut on the
// screen whole where lines were chosen by number.
import { plainText } from './ansi/parser';
import type { Stream } from './record';
import type { LogSource } from './source';

/** More than this belongs in a file. */
export const MAX_COPIED_LINES = 20_000;
const PAGE = 1_000;

/** The clean text of these lines, both included. */
export async function textOfLines(source: LogSource, from: number, to: number, stream: Stream | undefined): Promise<string> {
  const lines: string[][] = [];
  const end = Math.min(to, from + MAX_COPIED_LINES - 1);
  for (let line = from; line <= end;) {
    const page = await source.page(line, Math.min(PAGE, end - line + 1), stream);
    for (const record of page.records) {
      if (record.line > end) break;
      const last = lines.at(-1);
      if (record.cont && last) last.push(record.text);
      else lines.push([record.text]);
    }
    if (page.records.length === 0 || page.nextLine <= line) break;
    line = page.nextLine;
  }
  return lines.map(plainText).join('\n');
}

/** The text of what is selected with the mouse in a list of rows: the rows' own text and nothing beside it. */
export function textOfSelection(selection: Selection, texts: Iterable<Element>): string {
  if (selection.rangeCount === 0) return '';
  const range = selection.getRangeAt(0);
  let out: string | undefined;
  for (const text of texts) {
    if (!range.intersectsNode(text)) continue;
    const part = document.createRange();
    part.selectNodeContents(text);
    if (range.compareBoundaryPoints(Range.START_TO_START, part) > 0) part.setStart(range.startContainer, range.startOffset);
    if (range.compareBoundaryPoints(Range.END_TO_END, part) < 0) part.setEnd(range.endContainer, range.endOffset);
    // A piece of a long line is a row of its own on the screen only.
    const joint = out === undefined || text.closest('[data-cont]') ? '' : '\n';
    out = `${out ?? ''}${joint}${part.toString()}`;
  }
  return out ?? '';
}
