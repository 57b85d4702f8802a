import { expect, test } from 'vitest';
import { eventKey, type PlatformEvent } from '../src/lib/api/shapes';

const event = (SK: string, number: number, eventType: string): PlatformEvent => ({
  SK,
  number,
  eventType,
  timestamp: 1_767_453_739_640,
  properties: {},
  context: {},
});

test('events have unique keys', () => {
  const events = [
    event('TIMESTAMP#1#EVENT#a', 2, 'Task Processing Started'),
    event('TIMESTAMP#1#EVENT#b', 2, 'Task Heartbeat'),
    event('TIMESTAMP#2#EVENT#c', 2, 'Task Heartbeat'),
  ];
  expect(new Set(events.map(eventKey)).size).toBe(events.length);
});
