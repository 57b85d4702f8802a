// Makes a screenshot small: an RGB or RGBA PNG, as Chromium writes it, becomes one of 256 colours.
// A page of the interface has few colours beside the edges of its letters, so that the difference
// cannot be seen.
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const PALETTE = 256;

function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) };
    at += length + 12;
  }
}

function chunk(type, data) {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, data.length + 8)), data.length + 8);
  return out;
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** The pixels, each as 0xRRGGBB. */
function pixels(png) {
  const parts = [...chunks(png)];
  const header = parts[0].data;
  const [width, height, depth, kind] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  if (depth !== 8 || (kind !== 2 && kind !== 6)) throw new Error(`a PNG of kind ${kind} with ${depth} bits is not what Chromium writes`);
  const size = kind === 6 ? 4 : 3;
  const raw = inflateSync(Buffer.concat(parts.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const stride = width * size;
  const found = new Uint32Array(width * height);
  let above = Buffer.alloc(stride);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (stride + 1)];
    const row = Buffer.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let x = 0; x < stride; x += 1) {
      const [left, up, corner] = [x < size ? 0 : row[x - size], above[x], x < size ? 0 : above[x - size]];
      row[x] += [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
    }
    for (let x = 0; x < width; x += 1) found[y * width + x] = row.readUIntBE(x * size, 3);
    above = row;
  }
  return { width, height, found };
}

/** The most frequent colours, and for each colour its index among them. */
function palette(found) {
  const counts = new Map();
  for (const colour of found) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const chosen = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, PALETTE).map(([colour]) => colour);
  const distance = (a, b) => [16, 8, 0].reduce((sum, bits) => sum + (((a >> bits) & 255) - ((b >> bits) & 255)) ** 2, 0);
  const nearest = (colour) => chosen.reduce((best, one, index) => (distance(one, colour) < distance(chosen[best], colour) ? index : best), 0);
  return { chosen, indexes: new Map([...counts.keys()].map((colour) => [colour, nearest(colour)])) };
}

/** The same picture, smaller. */
export function optimised(png) {
  const { width, height, found } = pixels(png);
  const { chosen, indexes } = palette(found);
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) rows[y * (width + 1) + x + 1] = indexes.get(found[y * width + x]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(chosen.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('PLTE', colours), chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
