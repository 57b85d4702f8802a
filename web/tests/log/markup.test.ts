// The viewer makes text nodes only: nothing in its source turns a text into markup or code, and no markup carries a style of its own.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../src/lib/log/', import.meta.url);
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(ts|svelte)$/.test(name));

it('finds the source files', () => expect(files.length).toBeGreaterThan(30));

it.each(files)('%s', (name) => {
  const text = readFileSync(new URL(name, root), 'utf8');
  expect(text).not.toMatch(/\{@html|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|srcdoc/);
  expect(text).not.toMatch(/<[a-z][^>]*\sstyle="/);
});
