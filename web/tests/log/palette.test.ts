// The terminal colours: readable in both themes, and the same in the style sheet as in the code.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { contrast, fromHex, hex, indexed, READABLE, readable } from '../../src/lib/log/ansi/color';
import { parseLine } from '../../src/lib/log/ansi/parser';
import { DARK, LIGHT } from '../../src/lib/log/ansi/palette';

const css = readFileSync(new URL('../../src/lib/log/ansi/palette.css', import.meta.url), 'utf8');

describe.each([
  ['light', LIGHT],
  ['dark', DARK],
])('%s', (_name, theme) => {
  it.each(theme.named.map((color, index) => [index, hex(color), color] as const))('colour %i, %s, can be read', (_index, _hex, color) => {
    for (const ground of [theme.ground, theme.soft, theme.chosen]) expect(contrast(color, ground)).toBeGreaterThanOrEqual(READABLE);
  });

  it('has sixteen different colours, and readable text', () => {
    expect(new Set(theme.named).size).toBe(16);
    expect(contrast(theme.text, theme.ground)).toBeGreaterThanOrEqual(7);
    for (const ground of [theme.ground, theme.soft, theme.chosen]) expect(contrast(theme.dim, ground)).toBeGreaterThanOrEqual(READABLE);
  });

  it('any colour on any background is made readable', () => {
    for (let index = 16; index < 256; index += 1) {
      for (const ground of [theme.ground, 0x808080, 0x767676, indexed(271 - index)]) {
        expect(contrast(readable(indexed(index), ground), ground)).toBeGreaterThanOrEqual(READABLE);
      }
    }
  });
});

it('any colour is readable on all backgrounds of the log', () => {
  for (let index = 16; index < 256; index += 1) {
    const found = /^light-dark\((#\w+), (#\w+)\)$/.exec(parseLine([`\u001b[38;5;${index}mx`]).spans[0]?.color ?? '');
    for (const [at, theme] of [LIGHT, DARK].entries()) {
      for (const ground of [theme.ground, theme.soft, theme.chosen]) {
        expect(contrast(fromHex(found?.[at + 1] ?? ''), ground)).toBeGreaterThanOrEqual(READABLE);
      }
    }
  }
});

it('the style sheet has the same values', () => {
  const pair = (name: string): [string, string] => {
    const found = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css);
    return [found?.[1] ?? '', found?.[2] ?? ''];
  };
  LIGHT.named.forEach((color, index) => expect(pair(`ansi-${index}`)).toEqual([hex(color), hex(DARK.named[index] ?? 0)]));
  expect(pair('log-ground')).toEqual([hex(LIGHT.ground), hex(DARK.ground)]);
  expect(pair('log-soft')).toEqual([hex(LIGHT.soft), hex(DARK.soft)]);
  expect(pair('log-chosen')).toEqual([hex(LIGHT.chosen), hex(DARK.chosen)]);
  expect(pair('log-text')).toEqual([hex(LIGHT.text), hex(DARK.text)]);
  expect(pair('log-dim')).toEqual([hex(LIGHT.dim), hex(DARK.dim)]);
});

it('contrast follows WCAG', () => {
  expect(contrast(0x000000, 0xffffff)).toBeCloseTo(21, 5);
  expect(contrast(fromHex('#767676'), 0xffffff)).toBeCloseTo(4.54, 2);
});
