// Binary frames of the log stream: many records in one, as the server stores them. A frame is u64 first line, u32 attempt, u8 flags (bit 0:
// late), i64 Unix milliseconds, all little-endian; then records of zigzag varint time difference, flag byte, varint length, bytes.
// Records are found without being decoded, so that output which is not on the screen costs little.
import type { LogRecord, Stream } from './record';

const HEADER_BYTES = 21;
const STREAMS: readonly (Stream | undefined)[] = ['stdout', 'stderr', 'platform'];

/** A run of records in its place in the log. */
export interface Batch {
  firstLine: number;
  /** The number of the record after its last one. */
  nextLine: number;
  /** The records from this line on. */
  records(from: number): LogRecord[];
}

/** A batch of records that are decoded already; they must be in order. */
export function batchOf(records: readonly LogRecord[], firstLine: number): Batch {
  const last = records.at(-1);
  return { firstLine, nextLine: last ? last.line + 1 : firstLine, records: (from) => records.filter((record) => record.line >= from) };
}

/** Reads a frame. Throws where it is damaged. */
export function decodeBatch(frame: ArrayBuffer): Batch {
  if (frame.byteLength < HEADER_BYTES) throw new Error('damaged log batch');
  const view = new DataView(frame);
  const firstLine = Number(view.getBigUint64(0, true));
  const attempt = view.getUint32(8, true);
  const late = (view.getUint8(12) & 1) !== 0;
  const reader = new Reader(new Uint8Array(frame, HEADER_BYTES));
  let count = 0;
  for (; !reader.done; count += 1) reader.pass();
  if (!Number.isSafeInteger(firstLine + count)) throw new Error('damaged log batch');
  const records = (from: number): LogRecord[] => {
    const out: LogRecord[] = [];
    let at = Number(view.getBigInt64(13, true));
    reader.offset = 0;
    for (let line = firstLine; !reader.done; line += 1) {
      if (line < from) {
        at += reader.pass();
        continue;
      }
      const record = reader.record(at, { line, attempt, late });
      at = record.at;
      out.push(record);
    }
    return out;
  };
  return { firstLine, nextLine: firstLine + count, records };
}

class Reader {
  offset = 0;
  private readonly text = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(private readonly bytes: Uint8Array) {}

  get done(): boolean {
    return this.offset >= this.bytes.length;
  }

  /** A number; times and lengths stay far below what a double holds exactly. */
  varint(): number {
    let [value, scale] = [0, 1];
    for (let count = 0; count < 10; count += 1) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new Error('damaged log batch');
  }

  delta(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  flags(): number {
    const flags = this.byte();
    if (STREAMS[flags & 3] === undefined) throw new Error('damaged log batch');
    return flags;
  }

  skip(length: number): void {
    if (length > this.bytes.length - this.offset) throw new Error('damaged log batch');
    this.offset += length;
  }

  /** Goes over a record; how much later it was than the one before. */
  pass(): number {
    const delta = this.delta();
    this.flags();
    this.skip(this.varint());
    return delta;
  }

  record(before: number, of: { line: number; attempt: number; late: boolean }): LogRecord {
    const at = before + this.delta();
    const flags = this.flags();
    const length = this.varint();
    const text = this.text.decode(this.bytes.subarray(this.offset, this.offset + length));
    this.skip(length);
    return { ...of, at, stream: STREAMS[flags & 3] ?? 'stdout', cont: (flags & 4) !== 0, eol: (flags & 8) !== 0, text };
  }

  private byte(): number {
    const byte = this.bytes[this.offset];
    if (byte === undefined) throw new Error('damaged log batch');
    this.offset += 1;
    return byte;
  }
}
