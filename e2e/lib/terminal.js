// What a terminal shows after a program has written to it: lines of styled spans. It knows the few
// controls that runvoy uses: colours, bold, dim, underlined, carriage return, and erasing the rest
// of a line.

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
const CONTROL = /\x1b\[([0-9;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]+/g;

/** The style after a `CSI … m`. */
function restyle(style, codes) {
  const next = { ...style };
  for (const code of codes.split(';').map(Number)) {
    if (code === 0) for (const name of Object.keys(next)) delete next[name];
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) [next.bold, next.dim] = [undefined, undefined];
    else if (code === 39) next.colour = undefined;
    else if (code >= 30 && code <= 37) next.colour = COLOURS[code - 30];
    else if (code >= 90 && code <= 97) next.colour = COLOURS[code - 90];
  }
  return next;
}

/** Cells of one style in a row become one span: `{ text, column, style }`. */
function spans(cells) {
  const found = [];
  cells.forEach(({ char, style }, column) => {
    const last = found.at(-1);
    if (last && JSON.stringify(last.style) === JSON.stringify(style)) last.text += char;
    else found.push({ text: char, column, style });
  });
  return found.filter(({ text, style }) => text.trim() || style.underline);
}

/** The lines on the screen, each a list of spans. */
export function screen(output) {
  const lines = [[]];
  let [style, column] = [{}, 0];
  for (const [part, codes, final] of output.matchAll(CONTROL)) {
    const line = lines.at(-1);
    if (final === 'm') style = restyle(style, codes || '0');
    else if (final === 'K') line.length = column;
    else if (part === '\r') column = 0;
    else if (part === '\n') lines.push([]);
    else if (final === undefined) for (const char of part) line[column++] = { char, style };
  }
  if (lines.at(-1).length === 0) lines.pop();
  return lines.map((line) => spans(Array.from(line, (cell) => cell ?? { char: ' ', style: {} })));
}
