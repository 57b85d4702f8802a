// The sixteen named terminal colours in both themes, and the log's own grounds and text. `palette.css` holds the same values for the
// style sheet; a test keeps the two equal and every text colour readable.
import { fromHex } from './color';

/** The colours of one theme. */
export interface Theme {
  ground: number;
  /** The grounds of a row that is pointed at, and of chosen ones. */
  soft: number;
  chosen: number;
  text: number;
  dim: number;
  /** black red green yellow blue magenta cyan white, then their bright forms. */
  named: readonly number[];
}

const colors = (text: string): number[] => text.split(' ').map(fromHex);

export const LIGHT: Theme = {
  ground: 0xfbfbfa,
  soft: 0xf3f4f5,
  chosen: 0xfff4cf,
  text: 0x1f2328,
  dim: 0x5c6570,
  named: colors(
    '#24292f #b3261e #1a6b30 #7a5200 #0a55c4 #8a2fa8 #0b6672 #57606a #4b535d #c62f26 #217a39 #8a5d00 #1a66d6 #a03cc0 #0f7481 #626a74',
  ),
};

export const DARK: Theme = {
  ground: 0x12161c,
  soft: 0x1a2027,
  chosen: 0x2a2612,
  text: 0xdde3ea,
  dim: 0x939fac,
  named: colors(
    '#8a94a0 #ff8a80 #6fce84 #e0b64a #7db4ff #dc9bf2 #5fcbd6 #cfd6de #a3adb8 #ffa69e #93e0a3 #f0cd70 #a3caff #e8b8f8 #8fdfe7 #ffffff',
  ),
};
