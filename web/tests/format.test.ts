// Formatting, and the actions of each role.
import { expect, test } from 'vitest';
import { can } from '../src/lib/api/can';
import { ago, capitalize, count, duration, money, oneLine, escapeBidi, shortId, statusLabel } from '../src/lib/format';
import { entityPath } from '../src/pages/audit-entity';
import { parseJob, parseTasks } from '../src/pages/job-text';
import { findTasks } from '../src/pages/task-search';

test('a duration has its two largest units', () => {
  const shown = [-5, 0, 999, 1_000, 59_999, 60_000, 125_000, 3_600_000, 12_000_000, 86_400_000, 187_200_000].map(duration);
  expect(shown).toEqual(['0 ms', '0 ms', '999 ms', '1 s', '59 s', '1 min', '2 min 5 s', '1 h', '3 h 20 min', '1 d', '2 d 4 h']);
});

test('an age is never in the future', () => {
  const at = 1_000_000_000_000;
  const shown = [-9, 0, 30, 90, 7_200, 172_800].map((seconds) => ago(at, at + seconds * 1_000));
  expect(shown).toEqual(['just now', 'just now', '30 s ago', '1 min ago', '2 h ago', '2 d ago']);
});

test('small costs keep their digits', () => {
  expect([0, 0.000123, 0.5, 12].map(money)).toEqual(['$0', '$0.00012', '$0.50', '$12.00']);
});

test('commands, ids, statuses and counts are formatted', () => {
  expect(oneLine('a\n  b\t', ['c d'])).toBe('a b c d');
  expect(['RUNNING', 'COMPLETED', 'ok', 'warn', 'PENDING', 'TERMINATING'].map(statusLabel)).toEqual(['Running', 'Completed', 'OK', 'Warning', 'Queued', 'Stopping']);
  expect([capitalize('no answer from X'), capitalize('')]).toEqual(['No answer from X', '']);
  expect(shortId('0192aaaabbbbccccddddeeeeffff0001')).toBe('ffff0001');
  expect([count(1, 'key'), count(0, 'key'), count(1_234, 'entry', 'entries')]).toEqual(['1 key', '0 keys', '1,234 entries']);
});

test('a role may act on all, own or no items', () => {
  const as = (role: string) => ({ email: 'me@example.com', role });
  expect(['admin', 'operator', 'developer', 'viewer', 'unknown'].map((role) => can(as(role), 'run'))).toEqual([true, true, true, false, false]);
  expect(can(as('developer'), 'kill', ['other@example.com'])).toBe(false);
  expect(can(as('developer'), 'kill', ['other@example.com', 'me@example.com'])).toBe(true);
  expect(can(as('operator'), 'kill', ['other@example.com'])).toBe(true);
  expect(can(undefined, 'share')).toBe(false);
});

test('audit events link to their targets', () => {
  expect([entityPath('TASK:01'), entityPath('JOB:02'), entityPath('USER:a@b:c')]).toEqual([['executions', '01'], ['jobs', '02'], undefined]);
});

test('a job is an object or a list of tasks', () => {
  expect(parseJob('[{"taskId":"a"}]')).toEqual({ tasks: [{ taskId: 'a' }] });
  expect(parseTasks('{"tasks":[]}')).toEqual({ tasks: [] });
  expect(() => parseJob('{')).toThrow(/invalid JSON/);
});

test('tasks are found by id, name and status', () => {
  const tasks = [{ taskId: 'build', status: 'FAILED' }, { taskId: 'b2', name: 'Deploy', status: 'RUNNING' }];
  const found = (text: string, status = '') => findTasks(tasks, text, status).map((task) => task.taskId);
  expect([found(''), found('B'), found('deploy'), found('defined'), found('', 'FAILED')]).toEqual([['build', 'b2'], ['build', 'b2'], ['b2'], [], ['build']]);
});

test('bidirectional controls in a command are shown', () => {
  expect(oneLine('rm -rf /tmp\u202e', ['\u2066x\u2069'])).toBe('rm -rf /tmp⟨U+202E⟩ ⟨U+2066⟩x⟨U+2069⟩');
  expect(escapeBidi('echo שלום\n')).toBe('echo שלום\n');
});
