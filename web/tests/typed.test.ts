// Generated types are usable without narrowing; `npm run check` fails otherwise.
import { expect, test } from 'vitest';
import type { Api } from '../src/lib/api/client';
import type { components, paths } from '../src/lib/api/schema';

type Answer<R> = R extends { content: { 'application/json': infer T } } ? T : never;
type Logs = Answer<paths['/api/v1/executions/{id}/logs']['get']['responses'][200]>;

/** Never called: what matters is that it compiles. */
export async function used(api: Api) {
  const logs = await api.get('/api/v1/executions/{id}/logs', { path: { id: '1' } });
  const same: Logs = logs;
  const execution = await api.get('/api/v1/executions/{id}', { path: { id: same.execution_id } });
  const [event] = await api.get('/api/v1/events', { query: { type: 'Audit' } });
  const properties: Record<string, unknown> | undefined = event?.properties;
  const words: (string | undefined)[] = [same.status, execution.command, event?.eventType, event?.entityId];
  const at: number | undefined = event?.timestamp;
  return { words, at, properties };
}

/** One type for every error: a held lock only adds fields. */
export function told(error: components['schemas']['Error']): string {
  return `${error.code}: ${error.error} ${error.details} ${error.lock_name ?? ''} ${error.held_by ?? ''} ${error.log_url ?? ''}`;
}

test('a held-lock error is an ordinary error', () => {
  const held = { code: 'LOCK_HELD', error: 'held', details: '', lock_name: 'prod' } as const;
  expect(told(held)).toContain('prod');
});
