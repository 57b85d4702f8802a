// The one way to call the server. Paths, parameters, bodies and answers are typed by the OpenAPI document; the credential
// travels as a header and is never part of an address.
import { ApiError, refusal } from './error';
import type { paths } from './schema';

type Method = 'get' | 'post' | 'put' | 'delete';
type PathsWith<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths];
type Json<R> = R extends { content: { 'application/json': infer T } } ? T : never;
type At<R, S extends number> = S extends keyof R ? Json<R[S]> : never;
/** The success body of a route: 202 or 201 before 200, which some routes use for dry runs. */
type Answer<O> = O extends { responses: infer R }
  ? 202 extends keyof R ? At<R, 202> : 201 extends keyof R ? At<R, 201> : At<R, 200>
  : never;
type Part<O, K extends string> = O extends { parameters: infer P } ? (K extends keyof P ? P[K] : never) : never;
type Body<O> = O extends { requestBody?: infer B } ? Json<NonNullable<B>> : never;
type Given<K extends string, T> = [NonNullable<T>] extends [never]
  ? { [X in K]?: never }
  : undefined extends T ? { [X in K]?: T } : { [X in K]: T };
type Options<O> = Given<'path', Part<O, 'path'>> &
  Given<'query', Part<O, 'query'> | undefined> &
  Given<'body', Body<O> | undefined> & { signal?: AbortSignal | undefined; idempotencyKey?: string };

/** A page of a list, and the cursor of the next one. */
export interface Page<T> {
  items: T;
  next: string | undefined;
  /** How many items a text search examined. */
  lookedAt: number | undefined;
}

/** A key, the token of a signed link, or nothing. */
export type Credential = { key: string } | { token: string } | undefined;

interface Loose {
  path?: Record<string, string>;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  signal?: AbortSignal;
  idempotencyKey?: string;
}

const TIMEOUT_MS = 30_000;

export class Api {
  /** The server's address without a slash at its end. */
  readonly endpoint: string;
  private readonly credential: Credential;

  constructor(endpoint: string, credential: Credential) {
    this.endpoint = endpoint.replace(/\/+$/, '');
    this.credential = credential;
  }

  async get<P extends PathsWith<'get'>>(path: P, ...[options]: Arg<Options<paths[P]['get']>>): Promise<Answer<paths[P]['get']>> {
    return (await this.send('get', path, options as Loose)).json() as Promise<Answer<paths[P]['get']>>;
  }

  /** A list together with its cursor. */
  async page<P extends PathsWith<'get'>>(path: P, ...[options]: Arg<Options<paths[P]['get']>>): Promise<Page<Answer<paths[P]['get']>>> {
    const response = await this.send('get', path, options as Loose);
    const items = (await response.json()) as Answer<paths[P]['get']>;
    const [next, lookedAt] = [response.headers.get('x-next-cursor'), response.headers.get('x-looked-at')];
    return { items, next: next ?? undefined, lookedAt: lookedAt === null ? undefined : Number(lookedAt) };
  }

  async post<P extends PathsWith<'post'>>(path: P, ...[options]: Arg<Options<paths[P]['post']>>): Promise<Answer<paths[P]['post']>> {
    return (await this.send('post', path, options as Loose)).json() as Promise<Answer<paths[P]['post']>>;
  }

  async put<P extends PathsWith<'put'>>(path: P, ...[options]: Arg<Options<paths[P]['put']>>): Promise<Answer<paths[P]['put']>> {
    return (await this.send('put', path, options as Loose)).json() as Promise<Answer<paths[P]['put']>>;
  }

  async delete<P extends PathsWith<'delete'>>(path: P, ...[options]: Arg<Options<paths[P]['delete']>>): Promise<void> {
    await this.send('delete', path, options as Loose);
  }

  /** The raw response, for bodies that are not JSON. Throws an `ApiError` where it is not 2xx. */
  async send(method: string, path: string, options: Loose = {}, timeout = TIMEOUT_MS): Promise<Response> {
    const headers = new Headers(this.headers());
    if (options.body !== undefined) {
      headers.set('content-type', 'application/json');
    }
    if (options.idempotencyKey) {
      headers.set('idempotency-key', options.idempotencyKey);
    }
    const signals = [AbortSignal.timeout(timeout), ...(options.signal ? [options.signal] : [])];
    const init: RequestInit = {
      method: method.toUpperCase(),
      headers,
      signal: AbortSignal.any(signals),
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    };
    const response = await fetch(this.address(path, options), init).catch((cause: unknown) => {
      if (options.signal?.aborted) {
        throw cause;
      }
      throw new ApiError(0, 'UNREACHABLE', `cannot reach ${this.endpoint}`, 'check that the server is running and that its cors_origins allow this page');
    });
    if (!response.ok) {
      throw await refusal(response);
    }
    return response;
  }

  /** The headers that carry the credential. */
  headers(): Record<string, string> {
    if (!this.credential) {
      return {};
    }
    return 'key' in this.credential ? { 'x-api-key': this.credential.key } : { authorization: `Bearer ${this.credential.token}` };
  }

  private address(path: string, { path: parts = {}, query = {} }: Loose): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts[name] ?? ''));
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null && value !== '') {
        search.set(name, String(value));
      }
    }
    return `${this.endpoint}${filled}${search.size ? `?${search}` : ''}`;
  }
}

type Arg<O> = object extends O ? [options?: O] : [options: O];

/** A fresh idempotency key: a retry after a lost response creates nothing twice. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
