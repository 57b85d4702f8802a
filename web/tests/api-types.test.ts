// The committed API types are the ones that the server's OpenAPI document gives today.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
// @ts-expect-error a build script without types of its own
import { generate, target } from '../scripts/api-types.js';

test('types match the OpenAPI document (else: npm run types)', async () => {
  expect(readFileSync(target as URL, 'utf8')).toBe(await (generate as () => Promise<string>)());
});
