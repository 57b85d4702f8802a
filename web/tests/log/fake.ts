// A log without a server: answers as the server's routes do, from records in memory.
import type { LogRecord, Stream } from '../../src/lib/log/record';
import { LogError, type LogHead, type LogPage, type LogSource, type SearchPage, type SearchQuery } from '../../src/lib/log/source';

export function record(line: number, text = `line ${line}`, more: Partial<LogRecord> = {}): LogRecord {
  return { line, at: 1_000 * line, stream: 'stdout', attempt: 1, cont: false, eol: true, late: false, text, ...more };
}

export class FakeLog implements LogSource {
  canSearch = true;
  status = 'RUNNING';
  websocketUrl: string | undefined = 'ws://server.example/stream?token=t';
  failing: LogError | undefined;
  /** Lines that retention took. */
  lost = new Set<number>();
  readonly asked: string[] = [];
  private readonly make: (line: number) => LogRecord;

  constructor(
    public count: number,
    make: (line: number) => Partial<LogRecord> = () => ({}),
  ) {
    this.make = (line) => ({ ...record(line), ...make(line) });
  }

  async head(): Promise<LogHead> {
    this.note('head');
    const url = this.status === 'RUNNING' ? this.websocketUrl : undefined;
    return { status: this.status, nextLine: this.count + 1, websocketUrl: url };
  }

  async page(fromLine: number, limit: number, stream: Stream | undefined): Promise<LogPage> {
    this.note(`page ${fromLine}+${limit}${stream ? ` ${stream}` : ''}`);
    const records: LogRecord[] = [];
    let line = fromLine;
    for (; line <= this.count && records.length < limit; line += 1) {
      const made = this.make(line);
      if (!this.lost.has(line) && (!stream || made.stream === stream)) records.push(made);
    }
    return { records, nextLine: line, bytes: records.reduce((sum, made) => sum + made.text.length, 0) };
  }

  async search(query: SearchQuery): Promise<SearchPage> {
    this.note(`search ${query.text} ${query.fromLine}`);
    const pattern = query.regex ? new RegExp(query.text.replace('(?i)', ''), query.text.startsWith('(?i)') ? 'i' : '') : undefined;
    const lines: number[] = [];
    for (let line = query.fromLine; line <= this.count; line += 1) {
      const text = this.make(line).text;
      if (pattern ? pattern.test(text) : text.includes(query.text)) lines.push(line);
    }
    const hits = lines.slice(0, query.limit);
    const nextLine = lines.length > hits.length ? (hits.at(-1) ?? 0) + 1 : undefined;
    return { total: lines.length, atLeast: false, lines: hits, texts: hits.map((line) => this.make(line).text), nextLine };
  }

  async download(): Promise<Response> {
    return new Response('');
  }

  private note(what: string): void {
    this.asked.push(what);
    if (this.failing) throw this.failing;
  }
}

/** Lets everything that waits for a promise go on. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 50; round += 1) await Promise.resolve();
}
