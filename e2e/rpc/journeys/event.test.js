// Events of an attempt: published while it runs, kept as they were published, read by others meanwhile and afterwards.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EventType, StreamType } from '../gen/job/v1/job_pb.js';
import { adminKey, enqueue, Feed, forged, logOf, Reader, refusal, speak, take, ways, workerKey } from '../lib/world.js';

const text = (words) => new TextEncoder().encode(words);
const shown = (bytes) => new TextDecoder().decode(bytes);
const at = (seconds) => ({ seconds: BigInt(seconds), nanos: 0 });

const start = (sequence) => ({
  sequence: BigInt(sequence),
  timestamp: at(1_700_000_000),
  eventType: EventType.PROCESS_START,
  eventData: { case: 'processStart', value: { pid: 4711, startedAt: at(1_700_000_000) } },
});
const output = (sequence, words) => ({
  sequence: BigInt(sequence),
  timestamp: at(1_700_000_001),
  eventType: EventType.OUTPUT,
  eventData: { case: 'output', value: { output: text(words) } },
});
const batch = (sequence, items) => ({
  sequence: BigInt(sequence),
  timestamp: at(1_700_000_002),
  eventType: EventType.OUTPUT_BATCH,
  eventData: {
    case: 'outputBatch',
    value: {
      outputs: items.map(([words, streamType]) => ({ output: text(words), streamType, timestampDeltaMs: 5 })),
      startSequence: BigInt(sequence),
      endSequence: BigInt(sequence),
      firstTimestampMs: 1_700_000_002_000n,
    },
  },
});
const end = (sequence, exitCode) => ({
  sequence: BigInt(sequence),
  timestamp: at(1_700_000_003),
  eventType: EventType.PROCESS_END,
  eventData: { case: 'processEnd', value: { pid: 4711, exitCode, runDuration: { seconds: 3n, nanos: 0 } } },
});

/** What identifies an event, in words that can be compared. */
function essence({ sequence, timestamp, eventType, eventData }) {
  const value = eventData.value;
  const words = eventData.case === 'output' ? shown(value.output) : eventData.case === 'outputBatch' ? value.outputs.map((item) => shown(item.output)) : null;
  return [Number(sequence), Number(timestamp?.seconds ?? -1), EventType[eventType], words];
}

async function read(client, request) {
  const found = [];
  for await (const { event } of client.events.streamJobEvents(request)) found.push(essence(event));
  return found;
}

for (const way of ways) {
  const [admin, worker] = [speak(way, adminKey), speak(way, workerKey)];
  const queue = `${way}-event`;

  describe(way, () => {
    test('what is published is read while it runs, and afterwards, as it was published', async () => {
      const { jobId } = await enqueue(admin, queue, { command: 'build' });
      const [{ taskToken }] = await take(worker, queue);
      const follower = new Reader((options) => admin.events.streamJobEvents({ jobId }, options));
      const events = [
        start(1),
        output(2, 'one\ntwo '),
        batch(3, [
          ['and a half\n', StreamType.STDOUT],
          ['oh\n', StreamType.STDERR],
        ]),
        end(4, 0),
      ];

      const feed = new Feed();
      const published = worker.events.publishJobEvents(feed);
      feed.push({ taskToken, events: [events[0]] });
      assert.deepEqual(essence((await follower.next()).event), essence(events[0]), 'before the stream that publishes it has ended');
      feed.push({ events: [events[1]] }, { events: events.slice(2) });
      feed.close();
      await published;
      for (const event of events.slice(1)) assert.deepEqual(essence((await follower.next()).event), essence(event));
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      assert.equal(await follower.next(), undefined, 'the stream of an ended job ends');

      assert.deepEqual(await read(speak(way, adminKey), { jobId }), events.map(essence));
      assert.deepEqual(await read(admin, { jobId, fromSequence: 3n }), events.slice(2).map(essence));
      assert.deepEqual(await read(admin, { jobId, fromTimestamp: 1_700_000_002_000n }), events.slice(2).map(essence));
      assert.deepEqual(await read(admin, { jobId, eventFilter: [EventType.OUTPUT, EventType.PROCESS_END] }), [events[1], events[3]].map(essence));
      const log = await logOf(jobId);
      assert.equal(log, 'one\ntwo and a half\noh\n');
    });

    test('a repeat is stored once, and an event without a time gets one', async () => {
      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      const publish = (...events) => worker.events.publishJobEvents((async function* () { yield { taskToken, events }; })());
      await publish(start(1), output(2, 'a\n'));
      await publish(start(1), output(2, 'a\n'), { ...output(3, 'b\n'), timestamp: undefined });
      await publish(output(3, 'b\n'));
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      const found = await read(admin, { jobId });
      assert.deepEqual(found.map(([sequence]) => sequence), [1, 2, 3]);
      assert.ok(found[2][1] > 1_700_000_100, 'the time of the server');
      assert.equal(await logOf(jobId), 'a\nb\n');
    });

    test('a monitor that counts misses nothing, though requests overtake each other', async () => {
      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      const publish = (...events) => worker.events.publishJobEvents((async function* () { yield { taskToken, events }; })());
      const monitor = (async () => {
        let [count, missing] = [0, 0];
        for await (const { event } of admin.events.streamJobEvents({ jobId })) {
          count += 1;
          missing += Math.abs(Number(event.sequence) - count);
        }
        return { count, missing };
      })();
      for (const sequences of [[2, 4], [1], [6], [3, 5], [9], [7, 8]]) {
        await publish(...sequences.map((sequence) => output(sequence, `${sequence}\n`)));
      }
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      assert.deepEqual(await monitor, { count: 9, missing: 0 });
    });

    test('an event that comes late to an attempt is sent once, before what is left of the next one', async () => {
      const { jobId } = await enqueue(admin, queue, { retries: 1 });
      const [first] = await take(worker, queue);
      const publish = (taskToken, ...events) => worker.events.publishJobEvents((async function* () { yield { taskToken, events }; })());
      await publish(first.taskToken, output(1, 'one\n'));
      const follower = new Reader((options) => admin.events.streamJobEvents({ jobId }, options));
      assert.equal(Number((await follower.next()).event.sequence), 1);
      await worker.jobs.releaseJob({ taskToken: first.taskToken });
      const [second] = await take(worker, queue);
      await publish(second.taskToken, output(1, 'second\n'));
      assert.equal(Number((await follower.next()).event.sequence), 2 ** 40 + 1);
      await publish(first.taskToken, output(3, 'three\n'), output(2, 'two\n'));
      for (const sequence of [2, 3]) assert.equal(Number((await follower.next()).event.sequence), sequence, 'marked by its number');
      await publish(second.taskToken, output(2, 'last\n'));
      assert.equal(Number((await follower.next()).event.sequence), 2 ** 40 + 2);
      await worker.jobs.completeJob({ taskToken: second.taskToken, jobResult: { success: true } });
      assert.equal(await follower.next(), undefined);
      const again = await read(admin, { jobId });
      assert.deepEqual(again.map(([sequence]) => sequence), [1, 2, 3, 2 ** 40 + 1, 2 ** 40 + 2], 'a new stream has all in their places');
    });

    test('the second attempt is read behind the first', async () => {
      const { jobId } = await enqueue(admin, queue, { retries: 1 });
      for (const attempt of [1, 2]) {
        const [{ taskToken }] = await take(worker, queue);
        await worker.events.publishJobEvents((async function* () { yield { taskToken, events: [start(1), output(2, `attempt ${attempt}\n`)] }; })());
        if (attempt === 1) await worker.jobs.releaseJob({ taskToken });
        else await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      }
      const found = await read(admin, { jobId });
      assert.deepEqual(found.map(([sequence]) => sequence), [1, 2, 2 ** 40 + 1, 2 ** 40 + 2]);
      assert.deepEqual(await read(admin, { jobId, fromSequence: BigInt(2 ** 40) }), found.slice(2));
    });

    test('a large event is kept whole', async () => {
      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      const large = `${'x'.repeat(1 << 20)}\n`;
      await worker.events.publishJobEvents((async function* () { yield { taskToken, events: [output(1, large)] }; })());
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      const found = await read(admin, { jobId });
      assert.equal(found.flatMap(([, , , words]) => words).join(''), large);
      assert.equal(await logOf(jobId), large);
    });

    test('events need a lease, and a job to be read', async () => {
      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      const publish = (token) => worker.events.publishJobEvents((async function* () { yield { taskToken: token, events: [start(1)] }; })());
      assert.equal((await refusal(publish('x y'))).code, 'InvalidArgument');
      assert.equal((await refusal(publish(forged(taskToken)))).code, 'PermissionDenied');
      assert.equal((await refusal(read(admin, { jobId: '0190a1b2c3d47e5f8a9b0c1d2e3f4a5b' }))).code, 'NotFound');
      assert.equal((await refusal(read(speak(way, ''), { jobId }))).code, 'Unauthenticated');
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
    });
  });
}
