// Colours as numbers (0xrrggbb): the 256-colour table, contrast as WCAG counts it, and text colours moved just far enough to be read.

/** The least contrast of text that WCAG AA accepts. */
export const READABLE = 4.5;

const CUBE = [0, 95, 135, 175, 215, 255];

/** The colour behind an index of 16 to 255; the first sixteen belong to the palette. */
export function indexed(index: number): number {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return rgb(grey, grey, grey);
  }
  const cube = index - 16;
  const step = (at: number): number => CUBE[at] ?? 0;
  return rgb(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6));
}

/** A colour of three parts, each 0 to 255. */
export function rgb(red: number, green: number, blue: number): number {
  return (red << 16) | (green << 8) | blue;
}

/** `#rrggbb`. */
export function hex(color: number): string {
  return `#${color.toString(16).padStart(6, '0')}`;
}

/** A colour from `#rrggbb`. */
export function fromHex(text: string): number {
  return Number.parseInt(text.slice(1), 16);
}

/** Relative luminance, 0 to 1. */
export function luminance(color: number): number {
  const part = (shift: number): number => {
    const value = ((color >> shift) & 0xff) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0);
}

/** The contrast ratio of two colours, 1 to 21. */
export function contrast(one: number, other: number): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function mix(from: number, to: number, share: number): number {
  const part = (shift: number): number => {
    const [a, b] = [(from >> shift) & 0xff, (to >> shift) & 0xff];
    return Math.round(a + (b - a) * share);
  };
  return rgb(part(16), part(8), part(0));
}

const known = new Map<number, number>();
const MAX_KNOWN = 4_096;

/** The text colour itself where it can be read on the ground, else the nearest one towards black or white that can. */
export function readable(text: number, ground: number): number {
  const key = text * 0x1000000 + ground;
  let found = known.get(key);
  if (found === undefined) {
    found = moved(text, ground);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(key, found);
  }
  return found;
}

function moved(text: number, ground: number): number {
  if (contrast(text, ground) >= READABLE) return text;
  // One of the two always reaches 4.5: the worst ground still has 4.58 with either.
  const goal = contrast(0xffffff, ground) > contrast(0x000000, ground) ? 0xffffff : 0x000000;
  for (let share = 0.05; share < 1; share += 0.05) {
    const candidate = mix(text, goal, share);
    if (contrast(candidate, ground) >= READABLE) return candidate;
  }
  return goal;
}
