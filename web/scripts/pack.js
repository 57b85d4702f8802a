// Prepares the built bundle for being part of the server: a compressed twin of each file that gains by it, and `bundle.tsv`, the
// table that the server's build script turns into code: path, type, whether there is a twin, and a hash of the content.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';

const out = process.env.RUNVOY_WEB_OUT;
if (!out) throw new Error('RUNVOY_WEB_OUT must name the directory of the bundle');

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const files = readdirSync(out, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && extname(entry.name) in TYPES)
  .map((entry) => join(entry.parentPath, entry.name).slice(out.length + 1))
  .sort();
const rows = files.map((path) => {
  const content = readFileSync(join(out, path));
  const packed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
  const gains = packed.length < content.length * 0.9;
  if (gains) writeFileSync(join(out, `${path}.gz`), packed);
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 24);
  return [path, TYPES[extname(path)], gains ? 'gzip' : '-', hash].join('\t');
});
writeFileSync(join(out, 'bundle.tsv'), rows.map((row) => `${row}\n`).join(''));
