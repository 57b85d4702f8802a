// Writes src/lib/api/schema.ts: the types of the HTTP API, from the OpenAPI document that the server's tests keep.
// `npm run types` writes the file; tests/api-types.test.ts says when that was forgotten.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const snapshot = new URL('../../crates/server/tests/api/snapshots/api__description__openapi.snap', import.meta.url);
export const target = new URL('../src/lib/api/schema.ts', import.meta.url);

/** The text that schema.ts should have. */
export async function generate() {
  const text = readFileSync(snapshot, 'utf8');
  // A snapshot is a header between two lines of dashes, then the document.
  const document = JSON.parse(text.slice(text.indexOf('\n---\n') + 5));
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods)) {
      // Every refusal has the one error body; written out for each route they would be nine tenths of the file.
      operation.responses = Object.fromEntries(Object.entries(operation.responses ?? {}).filter(([status]) => status < '300'));
    }
  }
  const body = astToString(await openapiTS(document, { alphabetize: true, emptyObjectsUnknown: true }));
  return `// The types of the HTTP API, made from its OpenAPI document by \`npm run types\`. Not to be edited.\n\n${body}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(target, await generate());
}
