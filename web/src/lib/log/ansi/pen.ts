// The terminal's pen: colours and styles as `ESC [ … m` sets them. A pen is a value; the same settings are the same pen, so that
// neighbouring characters can be compared by identity.
import { indexed, rgb } from './color';

/** 0 to 15: one of the palette's sixteen; `{ rgb }`: any other colour; absent: the log's own. */
export type Color = number | { rgb: number } | undefined;

export interface Pen {
  readonly text: Color;
  readonly ground: Color;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly inverse: boolean;
  readonly strike: boolean;
  readonly hidden: boolean;
  readonly href: string | undefined;
}

export const PLAIN: Pen = Object.freeze({
  text: undefined,
  ground: undefined,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
  hidden: false,
  href: undefined,
});

const ON: Record<number, Partial<Pen>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  8: { hidden: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  28: { hidden: false },
  29: { strike: false },
  39: { text: undefined },
  49: { ground: undefined },
};

/** The pen after a colour sequence. A link is not ended by it. */
export function pressed(pen: Pen, params: readonly number[]): Pen {
  let next: Pen = pen;
  for (let at = 0; at < params.length; at += 1) {
    const code = params[at] ?? 0;
    if (code === 0) {
      next = { ...PLAIN, href: pen.href };
    } else if (code === 38 || code === 48) {
      const [color, used] = extended(params, at + 1);
      at += used;
      if (color !== undefined) next = code === 38 ? { ...next, text: color } : { ...next, ground: color };
    } else {
      next = { ...next, ...(ON[code] ?? named(code)) };
    }
  }
  return next;
}

function named(code: number): Partial<Pen> {
  if (code >= 30 && code <= 37) return { text: code - 30 };
  if (code >= 40 && code <= 47) return { ground: code - 40 };
  if (code >= 90 && code <= 97) return { text: code - 82 };
  if (code >= 100 && code <= 107) return { ground: code - 92 };
  return {};
}

/** A colour of the 256-colour table or of three parts, and how many numbers it took. */
function extended(params: readonly number[], at: number): [Color, number] {
  if (params[at] === 5) {
    const index = params[at + 1];
    if (index === undefined || index > 255) return [undefined, 2];
    return [index < 16 ? index : { rgb: indexed(index) }, 2];
  }
  if (params[at] === 2) {
    const [red, green, blue] = [params[at + 1] ?? 0, params[at + 2] ?? 0, params[at + 3] ?? 0];
    return [red > 255 || green > 255 || blue > 255 ? undefined : { rgb: rgb(red, green, blue) }, 4];
  }
  return [undefined, 0];
}
