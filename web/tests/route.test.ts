// Addresses: what the command line prints, what a signed link adds, and everything else in the fragment.
import { expect, test } from 'vitest';
import { base, fragment, href, read, writeFragment } from '../src/lib/route';

const place = (pathname: string, search = '', hash = '') => ({ pathname, search, hash });

test('the address printed by the CLI opens the log', () => {
  expect(read(place('/logs', '?execution_id=01ab', '#L120-L140')).path).toEqual(['executions', '01ab']);
  expect(read(place('/', '?execution_id=01ab')).path).toEqual(['executions', '01ab']);
  expect(read(place('/logs', '?execution_id=01ab', '#token=ey.J')).path).toEqual(['executions', '01ab']);
});

test('other pages and their filters are in the fragment', () => {
  const route = read(place('/', '', '#/executions?status=FAILED&user=ana%40example.com'));
  expect(route.path).toEqual(['executions']);
  expect(route.query.get('user')).toBe('ana@example.com');
  expect(read(place('/', '', '#/jobs/01ab')).path).toEqual(['jobs', '01ab']);
  expect(read(place('/', '', '#/queues/a%2Fb')).path).toEqual(['queues', 'a/b']);
});

test('an unknown address opens the executions', () => {
  for (const hash of ['', '#', '#/', '#L1', '#%']) {
    expect(read(place('/', '', hash)).path).toEqual(['executions']);
  }
  expect(read(place('/', '', '#/%E0%A4%A')).path).toEqual(['%E0%A4%A']);
});

test('a route in the fragment wins over the query', () => {
  expect(read(place('/logs', '?execution_id=01ab', '#/jobs')).path).toEqual(['jobs']);
});

test('links round-trip under any base path', () => {
  for (const pathname of ['/', '/logs', '/tools/runvoy/', '/tools/runvoy/index.html']) {
    for (const path of [['jobs', 'a/b'], ['executions', '01ab'], ['users']]) {
      const address = new URL(href({ pathname }, path, { task: path[1] }), 'http://host');
      expect(read(address).path).toEqual(path);
      expect(base(address)).toBe(base({ pathname }));
    }
  }
});

test('the fragment holds lines and a token together', () => {
  expect(fragment('#L120-L140')).toEqual({ token: undefined, lines: { from: 120, to: 140 } });
  expect(fragment('#token=ey.J-_&L7')).toEqual({ token: 'ey.J-_', lines: { from: 7, to: 7 } });
  expect(fragment('#/jobs')).toEqual({ token: undefined, lines: null });
  for (const one of [{ token: 'ey.J', lines: { from: 3, to: 9 } }, { token: 'ey.J', lines: null }, { token: undefined, lines: { from: 3, to: 3 } }]) {
    expect(fragment(writeFragment(one))).toEqual(one);
  }
});
