// Pages rendered to markup from given data: loading, error, empty and full states.
import { render } from 'svelte/server';
import { expect, test, vi } from 'vitest';
import { ApiError } from '../src/lib/api/error';
import type { Reading } from '../src/lib/live.svelte';
import { session } from '../src/lib/session.svelte';

const at = '2026-01-01T00:00:00Z';
const reading = vi.hoisted(() => ({ data: undefined as unknown, error: undefined as unknown, loading: false, refresh: async () => undefined }));

vi.hoisted(() => {
  vi.stubGlobal('location', { pathname: '/', search: '', hash: '', href: 'http://host/', origin: 'http://host' });
  vi.stubGlobal('localStorage', { getItem: () => null });
});
vi.mock('../src/lib/live.svelte', () => ({ live: () => reading }));
vi.mock('../src/lib/session.svelte', () => ({ ownAddress: () => 'http://host', session: { phase: 'ready', can: () => false, me: { email: 'ana@example.com' }, api: { endpoint: '' } } }));

/** The markup of a page that has read this. */
async function page(name: string, read: Partial<Reading>, props: Record<string, unknown> = {}): Promise<string> {
  Object.assign(reading, { data: undefined, error: undefined, loading: false }, read);
  const { default: component } = await import(`../src/pages/${name}.svelte`);
  return render(component, { props }).body.replace(/<!--.*?-->/g, '');
}

const TABLES = [
  { name: 'Workers', rows: [{ worker_id: 'w', name: 'build-1', live: true, running: 1, concurrency: 2, seen_at: at, version: '1' }], cell: 'build-1', empty: 'No workers' },
  { name: 'Locks', rows: [{ lock_name: 'staging', held_by: 'ana', since: at, waiters: 0, execution_id: 'e' }], cell: 'staging', empty: 'No lock is held' },
  { name: 'Queues', rows: [{ name: 'builds', depth: 0, in_flight: 0 }], cell: 'builds', empty: 'No queues yet' },
];

test.each(TABLES)('$name: loading, refused, empty, full', async ({ name, rows, cell, empty }) => {
  const shown: string[][] = [];
  for (const read of [{ loading: true }, { error: new Error('no answer') }, { data: [] }, { data: rows }]) {
    const html = await page(name, read);
    shown.push([`<h1>${name}</h1>`, 'Loading…', 'Try again', empty, cell].filter((word) => html.includes(word)));
  }
  const heading = `<h1>${name}</h1>`;
  expect(shown).toEqual([[heading, 'Loading…'], [heading, 'Try again'], [heading, empty], [heading, cell]]);
});

test('a long list is paged and marks its end', async () => {
  const job = { jobId: 'j', status: 'RUNNING', createdAt: at };
  const links = async (next: string | undefined, query: string) => {
    const html = await page('Jobs', { data: { items: [job], next } }, { query: new URLSearchParams(query) });
    return ['>Newest<', '>Older<', 'End of the list'].filter((word) => html.includes(word));
  };
  expect(await links(undefined, '')).toEqual([]);
  expect(await links('c1', '')).toEqual(['>Older<']);
  expect(await links('c2', 'cursor=c1')).toEqual(['>Newest<', '>Older<']);
  expect(await links(undefined, 'cursor=c2')).toEqual(['>Newest<', 'End of the list']);
  expect(await page('Jobs', { loading: true }, { query: new URLSearchParams('cursor=c2') })).not.toContain('End of the list');
});

const JOB = { jobId: 'j', name: 'nightly', status: 'RUNNING', createdAt: at };

test.each([
  ...TABLES.map(({ name, rows, cell }) => ({ name, data: rows, kept: cell, props: {} })),
  { name: 'Jobs', data: { items: [JOB] }, kept: 'nightly', props: { query: new URLSearchParams() } },
  { name: 'Job', data: { ...JOB, tasks: [] }, kept: 'nightly', props: { id: 'j' } },
  { name: 'Health', data: { tasks: [] }, kept: 'Nothing is running', props: {} },
])('$name: data stays, with a notice, while the server is unreachable', async ({ name, data, kept, props }) => {
  const away = await page(name, { data, error: new ApiError(0, 'UNREACHABLE', 'no answer') }, props);
  expect(away).toContain(kept);
  expect(away).toContain('Server unreachable. Showing the last known state.');
  expect(await page(name, { data, error: new ApiError(403, 'FORBIDDEN', 'not for your role') }, props)).toContain('Not for your role. Showing the last known state.');
  expect(await page(name, { data }, props)).not.toContain('Showing the last');
});

test('the run form tells unreadable secrets from none', async () => {
  const none = 'No secrets yet.';
  expect(await page('Run', { data: { secrets: [], images: [] } })).toContain(none);
  expect(await page('Run', { loading: true })).not.toContain(none);
  const refused = await page('Run', { error: new Error('no answer') });
  expect(refused).not.toContain(none);
  expect(refused).toContain('Cannot load the images.');
  expect(refused).toContain('No answer');
});

test('a shared log is a whole page only for guests', async () => {
  const link = { id: 'e', token: 't' };
  expect(await page('Linked', { loading: true }, link)).not.toMatch(/<main|Sign in/);
  session.phase = 'setup';
  const guest = await page('Linked', { loading: true }, link);
  session.phase = 'ready';
  for (const part of ['<main', 'Sign in', 'Loading…']) expect(guest).toContain(part);
});

test('a queue shows its concurrency limits', async () => {
  const shown = async (limits: Record<string, number>) => /data-label="concurrency">([^<]*)</.exec(await page('Queues', { data: [{ name: 'builds', depth: 0, in_flight: 0, ...limits }] }))?.[1];
  expect([await shown({}), await shown({ concurrency: 4 }), await shown({ per_user: 2 }), await shown({ concurrency: 4, per_user: 2 })]).toEqual(['No limit', 'Max 4', 'Max 2 per user', 'Max 4, 2 per user']);
});

test('a worker is online, draining or offline', async () => {
  const worker = { worker_id: 'w', name: 'build-1', running: 0, concurrency: 1, seen_at: at, version: '1' };
  const shown = async (state: Record<string, boolean>) => /data-label="status">([^<]*)</.exec(await page('Workers', { data: [{ ...worker, ...state }] }))?.[1];
  expect([await shown({ live: true }), await shown({ live: true, draining: true }), await shown({ live: false, draining: true })]).toEqual(['online', 'draining', 'offline']);
});

test('a stopping execution says so', async () => {
  const execution = { execution_id: 'e', status: 'TERMINATING', command: 'sleep 60', created_by: 'ana@example.com', started_at: at };
  const stopping = 'Stopping (SIGTERM, then SIGKILL)';
  expect(await page('Execution', { data: execution }, { id: 'e' })).toContain(stopping);
  expect(await page('Execution', { data: { ...execution, status: 'RUNNING' } }, { id: 'e' })).not.toContain(stopping);
});

test('the sign-in page says that a key was refused', async () => {
  expect(await page('SetUp', {})).not.toContain('no longer valid');
  session.problem = new ApiError(401, 'INVALID_API_KEY', 'the API key was revoked or has expired');
  const refused = await page('SetUp', {});
  session.problem = undefined;
  expect(refused).toContain('Your key is no longer valid.');
});

test('the Mine filter shows whether it is on', async () => {
  const shown = (query: string) => page('Executions', { data: { items: [] } }, { query: new URLSearchParams(query) });
  vi.spyOn(session, 'can').mockReturnValue(true);
  expect(await shown('user=ana@example.com')).toMatch(/aria-pressed="true"[^>]*>Mine/);
  expect(await shown('')).toMatch(/aria-pressed="false"[^>]*>Mine/);
  vi.restoreAllMocks();
});

const COST = { by: 'user', since: at, executions: 3, cost_usd: 0.5, items: [{ name: 'ana@example.com', executions: 3, cost_usd: 0.5 }], more: 0, complete: true, has_rates: true };

test('costs: loading, refused, empty, full', async () => {
  const props = { query: new URLSearchParams() };
  const nothing = { ...COST, executions: 0, cost_usd: 0, items: [] };
  const shown: string[][] = [];
  for (const read of [{ loading: true }, { error: new Error('no answer') }, { data: nothing }, { data: COST }]) {
    const html = await page('Cost', read, props);
    shown.push(['<h1>Cost</h1>', 'Loading…', 'Try again', 'No runs yet', 'ana@example.com</a>'].filter((word) => html.includes(word)));
  }
  expect(shown).toEqual(['Loading…', 'Try again', 'No runs yet', 'ana@example.com</a>'].map((word) => ['<h1>Cost</h1>', word]));
});

test('costs say what they leave out', async () => {
  const shown = async (change: object, query = '') => page('Cost', { data: { ...COST, ...change } }, { query: new URLSearchParams(query) });
  const full = await shown({});
  expect(full).toContain('<strong>$0.50</strong> for 3 executions since 2026-01-01 (UTC).');
  expect(full).toMatch(/aria-pressed="true"[^>]*>User</);
  for (const note of ['not counted yet', 'cost nothing', 'not shown', 'No jobs in this period']) expect(full).not.toContain(note);
  expect(await shown({ complete: false })).toContain('The latest executions are not counted yet.');
  expect(await shown({ has_rates: false })).toContain('Executions cost nothing');
  expect(await shown({ more: 7 })).toContain('7 more rows not shown.');
  const jobs = await shown({ by: 'job', items: [] }, 'by=job&days=7');
  expect(jobs).toContain('No jobs in this period');
  expect(jobs).toMatch(/aria-pressed="true"[^>]*>Job</);
  expect(jobs).toMatch(/aria-pressed="true"[^>]*>7 days</);
});
