// API calls: credentials in a header, parameters escaped, all errors in one shape.
import { afterEach, expect, test, vi } from 'vitest';
import { Api, freshKey } from '../src/lib/api/client';
import { ApiError } from '../src/lib/api/error';

interface Sent {
  url: string;
  init: RequestInit;
}

function answering(response: () => Response | Promise<Response>): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    sent.push({ url, init });
    return response();
  });
  return sent;
}

const json = (body: unknown, init: ResponseInit = {}) => new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' }, ...init });
const header = (sent: Sent, name: string) => new Headers(sent.init.headers).get(name);

afterEach(() => vi.unstubAllGlobals());

test('a credential is sent in a header, never in the address', async () => {
  const sent = answering(() => json({ role: 'admin' }));
  await new Api('http://host/', { key: 'rv_secret' }).get('/api/v1/whoami');
  await new Api('http://host', { token: 'ey.J' }).get('/api/v1/whoami');
  await new Api('http://host', undefined).get('/api/v1/health');
  expect(sent.map(({ url }) => url)).toEqual(['http://host/api/v1/whoami', 'http://host/api/v1/whoami', 'http://host/api/v1/health']);
  expect(sent.map((one) => [header(one, 'x-api-key'), header(one, 'authorization')])).toEqual([
    ['rv_secret', null],
    [null, 'Bearer ey.J'],
    [null, null],
  ]);
  expect(sent.every(({ init }) => init.credentials === 'omit' && init.redirect === 'error')).toBe(true);
});

test('paths and queries are escaped, empty values left out', async () => {
  const sent = answering(() => json([]));
  const api = new Api('http://host', undefined);
  await api.delete('/api/v1/images/{image}', { path: { image: 'a/b:c?#' } });
  await api.page('/api/v1/executions', { query: { user: 'a&b', lock: '', limit: 5 } });
  expect(sent.map(({ url }) => url)).toEqual(['http://host/api/v1/images/a%2Fb%3Ac%3F%23', 'http://host/api/v1/executions?user=a%26b&limit=5']);
});

test('a list page has the next cursor', async () => {
  answering(() => json([1], { headers: { 'x-next-cursor': 'c1' } }));
  expect(await new Api('http://host', undefined).page('/api/v1/locks')).toEqual({ items: [1], next: 'c1' });
});

test('an error keeps the server’s text and the lock’s holder', async () => {
  const held = { error: 'lock x is held', code: 'LOCK_HELD', details: 'why', lock_name: 'x', held_by: 'ana', since: '', execution_id: '01' };
  answering(() => json(held, { status: 409, headers: { 'x-request-id': 'r1' } }));
  const error = await new Api('http://host', undefined).post('/api/v1/run', { body: { command: 'true' } }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 409, code: 'LOCK_HELD', message: 'lock x is held', details: 'why', requestId: 'r1', lock: { held_by: 'ana' } });
});

test('no answer and a foreign answer are told apart', async () => {
  answering(() => Promise.reject(new TypeError('failed to fetch')));
  const api = new Api('http://host', undefined);
  await expect(api.get('/api/v1/health')).rejects.toMatchObject({ status: 0, code: 'UNREACHABLE', isTransient: true });
  answering(() => new Response('<html>', { status: 502 }));
  await expect(api.get('/api/v1/health')).rejects.toMatchObject({ status: 502, isTransient: true });
  answering(() => json({ error: 'no', code: 'INVALID_API_KEY', details: '' }, { status: 401 }));
  await expect(api.get('/api/v1/health')).rejects.toMatchObject({ isUnauthorized: true, isTransient: false });
});

test('an aborted call throws the abort', async () => {
  const given = new AbortController();
  given.abort();
  answering(() => Promise.reject(new DOMException('aborted', 'AbortError')));
  await expect(new Api('http://host', undefined).get('/api/v1/health', { signal: given.signal })).rejects.toHaveProperty('name', 'AbortError');
});

test('idempotency keys are long and unique', () => {
  const keys = Array.from({ length: 100 }, freshKey);
  expect(new Set(keys).size).toBe(100);
  expect(keys.every((key) => /^[0-9a-f]{32}$/.test(key))).toBe(true);
});
