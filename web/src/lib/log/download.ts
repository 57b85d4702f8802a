// Downloads of a whole log: the command's very bytes, plain text without colours, or one JSON object a line. The key travels in a header,
// so the browser cannot simply be sent to an address: the answer is kept until it is complete, or, where it is large and the browser lets
// a page write one, streamed to a file that the user chose.
import { save } from '../file';
import { plainText } from './ansi/parser';
import type { DownloadFormat, LogSource } from './source';

export interface Download {
  format: 'raw' | 'plain' | 'ndjson';
  name: string;
  /** Too much to keep in memory. */
  large: boolean;
  /** Bytes so far. */
  onProgress(bytes: number): void;
  signal: AbortSignal;
}

const KINDS = {
  raw: { asked: 'raw', suffix: '.log', type: 'application/octet-stream' },
  plain: { asked: 'text', suffix: '.txt', type: 'text/plain' },
  ndjson: { asked: 'ndjson', suffix: '.ndjson', type: 'application/x-ndjson' },
} as const satisfies Record<Download['format'], { asked: DownloadFormat; suffix: string; type: string }>;

type Picker = (options: { suggestedName: string }) => Promise<{ createWritable(): Promise<WritableStream<Uint8Array>> }>;

/** Downloads a log into a file. Answers `false` where the user chose none. */
export async function download(source: LogSource, wanted: Download): Promise<boolean> {
  const kind = KINDS[wanted.format];
  const name = `${wanted.name}${kind.suffix}`;
  const file = wanted.large ? await chooseFile(name) : undefined;
  if (file === null) return false;
  const response = await source.download(kind.asked, wanted.signal);
  if (!response.body) throw new Error('the server sent no data');
  let bytes = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      wanted.onProgress(bytes);
      controller.enqueue(chunk);
    },
  });
  const body = response.body.pipeThrough(counted);
  const lines = wanted.format === 'plain' ? body.pipeThrough(plainLines()) : body;
  if (file) {
    await lines.pipeTo(file, { signal: wanted.signal });
    return true;
  }
  save(new Blob([await new Response(lines).blob()], { type: kind.type }), name);
  return true;
}

/** A file to write to; `undefined` where the browser offers none, `null` where the user wants none. */
async function chooseFile(name: string): Promise<WritableStream<Uint8Array> | undefined | null> {
  const picker = (globalThis as { showSaveFilePicker?: Picker }).showSaveFilePicker;
  if (!picker) return undefined;
  try {
    return await (await picker({ suggestedName: name })).createWritable();
  } catch (error) {
    return error instanceof DOMException && error.name === 'AbortError' ? null : undefined;
  }
}

/** Takes colours and every other escape out of a stream of lines. */
export function plainLines(): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  // Kept in pieces: joining a long line anew with every chunk would take time that grows with its square.
  let pieces: string[] = [];
  return new TransformStream({
    transform(chunk, controller) {
      const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
      pieces.push(first);
      if (more.length === 0) return;
      const lines = [pieces.join(''), ...more];
      pieces = [lines.pop() ?? ''];
      controller.enqueue(encoder.encode(`${lines.map(plain).join('\n')}\n`));
    },
    flush(controller) {
      const last = pieces.join('') + decoder.decode();
      if (last) controller.enqueue(encoder.encode(plain(last)));
    },
  });
}

function plain(line: string): string {
  return /[^\t\u0020-\u007e]/.test(line) ? plainText([line]) : line;
}
