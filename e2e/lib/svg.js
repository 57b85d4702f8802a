// A terminal session as an SVG without script, font or address of another host. Lines appear one
// after the other; a viewer without animation, or with reduced motion, shows all of them at once.

const FONT = 14;
const [CELL, LINE, EDGE, BAR] = [8.4, 20, 18, 34];
const COLOURS = { black: '#6e7681', red: '#ff7b72', green: '#56d364', yellow: '#e3b341', blue: '#79c0ff', magenta: '#d2a8ff', cyan: '#56d4dd', white: '#e6edf3' };
const STYLE = `
text { font: ${FONT}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #e6edf3; white-space: pre }
.bold { font-weight: 700 } .dim { fill: #9198a1 } .prompt { fill: #56d364 }
${Object.entries(COLOURS).map(([name, value]) => `.${name} { fill: ${value} }`).join(' ')}
g { animation: appear .2s backwards }
@keyframes appear { from { opacity: 0 } }
@media (prefers-reduced-motion: reduce) { g { animation: none } }`;

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** One span on the grid of cells: its width is given, so that any font keeps the columns. */
function span({ text, column, style }, y) {
  const trimmed = text.trimEnd();
  const indent = trimmed.length - trimmed.trimStart().length;
  const shown = trimmed.trimStart();
  const classes = [style.bold && 'bold', style.dim && 'dim', style.prompt && 'prompt', style.colour].filter(Boolean).join(' ');
  const x = (EDGE + (column + indent) * CELL).toFixed(1);
  const length = ([...shown].length * CELL).toFixed(1);
  return `<text${classes ? ` class="${classes}"` : ''} x="${x}" y="${y}" textLength="${length}" lengthAdjust="spacingAndGlyphs">${escape(shown)}</text>`;
}

/** `lines` are `{ spans, at }`: what stands on a line, and the second in which it appears. */
export function terminalSvg({ title, columns, lines }) {
  const [width, height] = [Math.ceil(columns * CELL + 2 * EDGE), BAR + lines.length * LINE + EDGE];
  const rows = lines.map(({ spans, at }, index) => {
    const y = BAR + (index + 1) * LINE - 5;
    return spans.length ? `<g style="animation-delay: ${at.toFixed(1)}s">${spans.map((one) => span(one, y)).join('')}</g>` : '';
  });
  const buttons = ['#ff5f57', '#febc2e', '#28c840'].map((fill, index) => `<circle cx="${EDGE + 4 + index * 18}" cy="17" r="5.5" fill="${fill}"/>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">`,
    `<title>${escape(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    buttons.join(''),
    ...rows.filter(Boolean),
    '</svg>\n',
  ].join('\n');
}
