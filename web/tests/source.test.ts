// Bans in the source: raw HTML, inline styles, code from text, other hosts, files without a comment.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = new URL('../src', import.meta.url).pathname;
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(ts|svelte|css)$/.test(path) && !path.endsWith('api/schema.ts'))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

const FORBIDDEN: [string, RegExp][] = [
  ['raw HTML', /\{@html|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write/],
  ['a script made from text', /\beval\(|new Function\(|setTimeout\(\s*['"`]|javascript:(?!alert)/],
  ['an inline style', /<[a-z][^>]*\sstyle="/],
  ['an address of another host', /(?:src|href|url\()\s*=?\s*["'(]https?:/],
  ['a cookie', /document\.cookie/],
  ['an address that is read once and then old', /=\{location\./],
];

test('finds the source files', () => {
  expect(files.length).toBeGreaterThan(50);
});

test.each(FORBIDDEN)('no file holds %s', (_, pattern) => {
  expect(files.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
});

test('index.html has no inline script, style or handler', () => {
  const page = readFileSync(new URL('../index.html', import.meta.url), 'utf8');
  expect(page.match(/<script(?![^>]*\ssrc=")[^>]*>|<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=/g)).toBeNull();
});

test('every file starts with a comment', () => {
  expect(files.filter(({ text }) => !/^(\/\/ |<!-- |\/\* )/.test(text)).map(({ path }) => path)).toEqual([]);
});

