// A pen turned into what an element needs: class names, and colours where no class has them. Text stays text; nothing here is markup.
import { hex, readable } from './color';
import { DARK, LIGHT, type Theme } from './palette';
import type { Color, Pen } from './pen';

/** A run of characters that look alike. */
export interface Span {
  text: string;
  /** Class names, separated by spaces; empty for plain text. */
  classes: string;
  /** Values of `light-dark()` for what no class covers. */
  color?: string;
  background?: string;
  /** An http or https address. */
  href?: string;
}

const looks = new WeakMap<Pen, Omit<Span, 'text'>>();

/** The span of some text in a pen. */
export function span(text: string, pen: Pen): Span {
  let look = looks.get(pen);
  if (!look) {
    look = lookOf(pen);
    looks.set(pen, look);
  }
  return { text, ...look };
}

function lookOf(pen: Pen): Omit<Span, 'text'> {
  const classes: string[] = [];
  if (pen.bold) classes.push('ansi-bold');
  if (pen.dim) classes.push('ansi-dim');
  if (pen.italic) classes.push('ansi-italic');
  if (pen.underline) classes.push('ansi-underline');
  if (pen.strike) classes.push('ansi-strike');
  if (pen.hidden) classes.push('ansi-hidden');
  const painted = paint(pen, classes);
  return { classes: classes.join(' '), ...painted, ...(pen.href === undefined ? {} : { href: pen.href }) };
}

/** A palette colour on the log's own ground has a class; every other pair is worked out for both themes, so that it can be read. */
function paint(pen: Pen, classes: string[]): { color?: string; background?: string } {
  if (pen.text === undefined && pen.ground === undefined && !pen.inverse) return {};
  if (typeof pen.text === 'number' && pen.ground === undefined && !pen.inverse) {
    classes.push(`ansi-fg-${pen.text}`);
    return {};
  }
  const [light, dark] = [pair(pen, LIGHT), pair(pen, DARK)];
  const color = `light-dark(${hex(light.text)}, ${hex(dark.text)})`;
  if (pen.ground === undefined && !pen.inverse) return { color };
  return { color, background: `light-dark(${hex(light.ground)}, ${hex(dark.ground)})` };
}

function pair(pen: Pen, theme: Theme): { text: number; ground: number } {
  const [text, ground] = [value(pen.text, theme, theme.text), value(pen.ground, theme, theme.ground)];
  if (pen.inverse) return { text: readable(ground, text), ground: text };
  // Without a ground of its own, text may come to stand on any of the log's.
  const grounds = pen.ground === undefined ? [theme.ground, theme.soft, theme.chosen] : [ground];
  return { text: grounds.reduce(readable, text), ground };
}

function value(color: Color, theme: Theme, otherwise: number): number {
  if (color === undefined) return otherwise;
  return typeof color === 'number' ? (theme.named[color] ?? otherwise) : color.rgb;
}
