// Where a log comes from: the server's log routes, as the viewer needs them. Everything that the viewer asks of the network but the stream
// itself goes through this seam, so that its stores can be tested without one.
import type { components } from '../api/schema';
import { recordsOf, type LogRecord, type Stream } from './record';

type LogsResponse = components['schemas']['LogsResponse'];
type SearchResponse = components['schemas']['SearchResponse'];

/** Where a log stands. */
export interface LogHead {
  status: string;
  /** The number that the next record will have. */
  nextLine: number;
  /** Where it can be followed; absent once it ended. */
  websocketUrl: string | undefined;
}

/** Records in order, and how far they reach. */
export interface LogPage {
  records: LogRecord[];
  /** Everything asked for before this line is in `records`. */
  nextLine: number;
  /** The size of the answer. */
  bytes: number;
}

export interface SearchQuery {
  text: string;
  regex: boolean;
  fromLine: number;
  limit: number;
  stream: Stream | undefined;
}

export interface SearchPage {
  /** How many lines match from `fromLine` on. */
  total: number;
  /** `total` is only a lower bound. */
  atLeast: boolean;
  lines: number[];
  texts: string[];
  nextLine: number | undefined;
}

export type DownloadFormat = 'raw' | 'text' | 'ndjson';

export interface LogSource {
  head(signal?: AbortSignal): Promise<LogHead>;
  page(fromLine: number, limit: number, stream: Stream | undefined, signal?: AbortSignal): Promise<LogPage>;
  search(query: SearchQuery, signal?: AbortSignal): Promise<SearchPage>;
  /** Whether the server looks for regular expressions for this caller. */
  readonly canSearch: boolean;
  download(format: DownloadFormat, signal?: AbortSignal): Promise<Response>;
}

/** An answer that is no success. */
export class LogError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 where there was no answer. */
    readonly status: number,
    /** Seconds to wait, where the server said so. */
    readonly retryAfter: number | undefined = undefined,
  ) {
    super(message);
    this.name = 'LogError';
  }

  /** Asking again later may help. */
  get isRetryable(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface HttpLogSource {
  /** The server's address, such as `https://runvoy.example.com`; empty for the page's own. */
  endpoint: string;
  executionId: string;
  /** The caller's credentials, asked for with every request. */
  headers: () => Record<string, string>;
  /** A signed link reads a log but may not search it on the server; then only plain text is found. */
  canSearch?: boolean;
  fetch?: typeof globalThis.fetch;
}

/** The log of an execution over HTTP. */
export function httpLogSource(options: HttpLogSource): LogSource {
  const execution = `${options.endpoint.replace(/\/+$/, '')}/api/v1/executions/${encodeURIComponent(options.executionId)}`;
  const base = `${execution}/logs`;
  const ask = async (path: string, query: Record<string, string | number | undefined>, signal?: AbortSignal): Promise<Response> => {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value));
    const call = options.fetch ?? globalThis.fetch;
    let response: Response;
    try {
      // A browser takes a key along to wherever it is sent on to: so nowhere.
      const init: RequestInit = { headers: options.headers(), cache: 'no-store', credentials: 'omit', redirect: 'error', ...(signal && { signal }) };
      response = await call(`${base}${path}?${params}`, init);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new LogError('server unreachable', 0);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  };
  const source: LogSource = {
    canSearch: options.canSearch ?? true,
    async head(signal) {
      const body = (await (await ask('', { tail: 0 }, signal)).json()) as LogsResponse;
      return { status: body.status, nextLine: body.next_line ?? 1, websocketUrl: body.websocket_url ? streamOf(execution, body.websocket_url) : undefined };
    },
    async page(fromLine, limit, stream, signal) {
      const text = await (await ask('', { from_line: fromLine, limit, stream }, signal)).text();
      const body = JSON.parse(text) as LogsResponse;
      return { records: recordsOf(body.events), nextLine: body.next_line ?? fromLine, bytes: text.length };
    },
    async search(query, signal) {
      if (!source.canSearch) return plainSearch(await ask('', { ...linesOf(query), search: query.text }, signal), query);
      const regex = query.regex ? 'true' : undefined;
      let body: SearchResponse;
      let fromLine = query.fromLine;
      // A search that reached its time limit without a hit goes on.
      do {
        body = (await (await ask('/search', { ...linesOf({ ...query, fromLine }), q: query.text, regex }, signal)).json()) as SearchResponse;
        fromLine = body.next_line ?? fromLine;
      } while (body.complete === false && body.hits.length === 0);
      const [lines, texts] = [body.hits.map((hit) => hit.line), body.hits.map((hit) => hit.message)];
      return { total: body.total, atLeast: body.complete === false, lines, texts, nextLine: body.next_line ?? undefined };
    },
    download: (format, signal) => ask('', { format }, signal),
  };
  return source;
}

/** The stream's address as the page itself reaches the server: the one that the server tells may be a public one, which the page's policy forbids. */
function streamOf(execution: string, told: string): string {
  try {
    const url = new URL(`${execution}/stream`, globalThis.location?.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.search = new URL(told).search;
    return url.href;
  } catch {
    return told;
  }
}

function linesOf(query: SearchQuery): Record<string, string | number | undefined> {
  return { from_line: query.fromLine, limit: query.limit, stream: query.stream };
}

/** Lines that hold a text, from the route that a signed link may read; it does not count beyond its limit. */
async function plainSearch(response: Response, query: SearchQuery): Promise<SearchPage> {
  const body = (await response.json()) as LogsResponse;
  const records = recordsOf(body.events);
  const full = records.length >= query.limit;
  return {
    total: records.length,
    atLeast: full,
    lines: records.map((record) => record.line),
    texts: records.map((record) => record.text),
    nextLine: full ? body.next_line : undefined,
  };
}

async function refusal(response: Response): Promise<LogError> {
  const wait = Number(response.headers.get('Retry-After') ?? Number.NaN);
  let message = `the server answered with status ${response.status}`;
  try {
    const body = (await response.json()) as { error?: string; details?: string };
    if (body.error) message = body.details ? `${body.error}: ${body.details}` : body.error;
  } catch {
    // A proxy's page instead of an answer: its status says enough.
  }
  return new LogError(message, response.status, Number.isFinite(wait) ? wait : undefined);
}
