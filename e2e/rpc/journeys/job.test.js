// Executions: submitted once, leased without polling, kept, ended, listed, cancelled; and refused where they must be.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { JobState } from '../gen/job/v1/job_pb.js';
import { adminKey, enqueue, forged, Reader, refusal, speak, stateOf, take, ways, workerKey } from '../lib/world.js';

for (const way of ways) {
  const [admin, worker] = [speak(way, adminKey), speak(way, workerKey)];
  const queue = way;

  describe(way, () => {
    test('the same request is the same job', async () => {
      const requestId = randomUUID();
      const made = await Promise.all(Array.from({ length: 10 }, () => enqueue(admin, queue, {}, requestId)));
      assert.equal(new Set(made.map((answer) => answer.jobId)).size, 1);
      assert.match(made[0].jobId, /^[0-9a-f]{32}$/);
      assert.equal(made[0].state, JobState.SCHEDULED);
      assert.ok(Math.abs(Number(made[0].createdAt.seconds) - Date.now() / 1000) < 60);
      const other = await refusal(enqueue(admin, queue, { command: 'false' }, requestId));
      assert.equal(other.code, 'FailedPrecondition');
      await admin.jobs.cancelJob({ jobId: made[0].jobId });
    });

    test('a lease comes when there is work, and shows what to run to its holder only', async () => {
      const reader = new Reader((options) => worker.jobs.dequeueJob({ queue, visibilityTimeoutSeconds: 60 }, options));
      assert.equal(await reader.comesWithin(300), false);
      const { jobId } = await enqueue(admin, queue, { command: 'echo $A', environment: { A: 'a value' }, metadata: { team: 'x' } });
      const { job, taskToken } = await reader.next();
      assert.equal(await reader.next(), undefined);
      assert.equal(job.jobId, jobId);
      assert.deepEqual([job.jobParams.command, job.jobParams.args], ['sh', ['-c', 'echo $A']]);
      assert.deepEqual([job.jobParams.environment, job.jobParams.metadata], [{ A: 'a value' }, { team: 'x' }]);
      assert.match(taskToken, /^[A-Za-z0-9_-]+$/);
      const shown = await stateOf(admin, jobId);
      assert.deepEqual([shown.state, shown.status, shown.queue, shown.attempt], [JobState.RUNNING, 'RUNNING', queue, 1]);
      assert.ok(!Object.values(shown.jobParams.environment).includes('a value'));
      const renewed = await worker.jobs.updateJob({ queue, taskToken, visibilityTimeoutSeconds: 90 });
      assert.equal(Number(renewed.leaseTtlMs), 90_000);
      await worker.jobs.completeJob({ taskToken, jobResult: { jobId, success: true, exitCode: 0 } });
      const ended = await stateOf(admin, jobId);
      assert.deepEqual([ended.state, ended.exitCode], [JobState.COMPLETED, 0]);
    });

    test('a program with its arguments is leased as it is', async () => {
      await enqueue(admin, queue, { command: 'printf', args: ['%s', '$A "b"\n'] });
      const [{ job, taskToken }] = await take(worker, queue);
      assert.deepEqual([job.jobParams.command, job.jobParams.args], ['printf', ['%s', '$A "b"\n']]);
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
    });

    test('the exit code and success decide how it ended', async () => {
      for (const [jobResult, state, exitCode] of [
        [{ success: true, exitCode: 0 }, JobState.COMPLETED, 0],
        [{ success: false, exitCode: 3 }, JobState.FAILED, 3],
        [{ success: true, exitCode: 4 }, JobState.FAILED, 4],
        [{ success: false, exitCode: 0, errorMessage: 'no such image' }, JobState.FAILED, 125],
      ]) {
        const { jobId } = await enqueue(admin, queue);
        const [{ taskToken }] = await take(worker, queue);
        await worker.jobs.completeJob({ taskToken, jobResult });
        const ended = await stateOf(admin, jobId);
        assert.deepEqual([ended.state, ended.exitCode], [state, exitCode], JSON.stringify(jobResult));
        if (jobResult.errorMessage) assert.match(ended.endReason, /no such image/);
      }
    });

    test('several leases come in one stream, each with its own token', async () => {
      const { results } = await admin.jobs.enqueueJobs({
        jobs: [1, 2, 3].map((n) => ({ requestId: randomUUID(), queue, jobParams: { command: `echo ${n}` } })),
      });
      const leases = await take(worker, queue, 3);
      assert.deepEqual(leases.map((lease) => lease.job.jobId).sort(), results.map((result) => result.job.jobId).sort());
      assert.equal(new Set(leases.map((lease) => lease.taskToken)).size, 3);
      const ends = leases.map(({ taskToken }) => ({ taskToken, jobResult: { success: true } }));
      const ended = await worker.jobs.completeJobs({ jobs: [...ends, { taskToken: 'nothing', jobResult: { success: true } }] });
      assert.deepEqual(ended.results.map((result) => result.error?.code ?? 0), [0, 0, 0, 3]);
      for (const { job } of leases) assert.equal((await stateOf(admin, job.jobId)).state, JobState.COMPLETED);
    });

    test('whoever goes away before there was work takes nothing', async () => {
      const gone = new Reader((options) => worker.jobs.dequeueJob({ queue }, options));
      assert.equal(await gone.comesWithin(200), false);
      gone.leave();
      assert.equal((await refusal(gone.next())).code, 'Canceled');
      const { jobId } = await enqueue(admin, queue);
      const [{ job, taskToken }] = await take(worker, queue);
      assert.equal(job.jobId, jobId);
      await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
    });

    test('a wait has the time that its client gives it', async () => {
      const waited = new Reader(({ signal }) => worker.jobs.dequeueJob({ queue }, { signal, timeoutMs: 300 }));
      assert.equal((await refusal(waited.next())).code, 'DeadlineExceeded');
    });

    test('a lease that is handed back is somebody else s', async () => {
      const { jobId } = await enqueue(admin, queue);
      const [first] = await take(worker, queue);
      await worker.jobs.releaseJob({ taskToken: first.taskToken });
      const late = await refusal(worker.jobs.completeJob({ taskToken: first.taskToken, jobResult: { success: true } }));
      assert.equal(late.code, 'FailedPrecondition');
      const [second] = await take(worker, queue);
      assert.equal(second.job.jobId, jobId);
      assert.notEqual(second.taskToken, first.taskToken);
      await worker.jobs.completeJob({ taskToken: second.taskToken, jobResult: { success: true } });
      assert.equal((await stateOf(admin, jobId)).state, JobState.COMPLETED);
    });

    test('lists come in pages, by number and by cursor, without values of the environment', async () => {
      const own = `${queue}-list`;
      const made = [];
      for (let n = 0; n < 5; n += 1) made.unshift((await enqueue(admin, own, { environment: { A: 'a value' } })).jobId);
      const ids = (answer) => answer.jobs.map((job) => job.jobId);
      const pages = [];
      for (const page of [1, 2, 3]) pages.push(await admin.jobs.listJobs({ queue: own, state: JobState.SCHEDULED, page, pageSize: 2 }));
      assert.deepEqual(pages.flatMap(ids), made);
      assert.equal(pages[0].lastPage, 3);
      const walked = [];
      for (let cursor = ''; ; ) {
        const answer = await admin.jobs.listJobs({ queue: own, pageSize: 2, cursor });
        walked.push(...ids(answer));
        cursor = answer.nextCursor;
        if (!cursor) break;
      }
      assert.deepEqual(walked, made);
      assert.ok(!JSON.stringify(pages.flatMap((page) => page.jobs.map((job) => job.jobParams))).includes('a value'));
      assert.deepEqual(ids(await admin.jobs.listJobs({ queue: own, state: JobState.COMPLETED })), []);
      for (const jobId of made) await admin.jobs.cancelJob({ jobId });
    });

    test('a cancel ends what waits, and tells the worker of what runs', async () => {
      const waiting = await enqueue(admin, queue);
      assert.equal((await admin.jobs.cancelJob({ jobId: waiting.jobId })).job.state, JobState.CANCELLED);
      assert.equal((await refusal(admin.jobs.cancelJob({ jobId: waiting.jobId }))).code, 'FailedPrecondition');

      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      assert.equal((await worker.jobs.updateJob({ taskToken })).kill, undefined);
      assert.equal((await admin.jobs.cancelJob({ jobId })).job.status, 'TERMINATING');
      const { kill } = await worker.jobs.updateJob({ taskToken });
      assert.equal(kill.by, 'admin@localhost');
      await worker.jobs.completeJob({ taskToken, jobResult: { success: false, exitCode: 143 } });
      const ended = await stateOf(admin, jobId);
      assert.deepEqual([ended.state, ended.status, ended.exitCode], [JobState.CANCELLED, 'STOPPED', 130]);
    });

    test('what is wrong is named with its code', async () => {
      const codes = async (calls) => {
        const found = {};
        for (const [name, call] of Object.entries(calls)) found[name] = (await refusal(call())).code;
        return found;
      };
      const { jobId } = await enqueue(admin, queue);
      const [{ taskToken }] = await take(worker, queue);
      const gone = '0190a1b2c3d47e5f8a9b0c1d2e3f4a5b';
      const success = { success: true };
      assert.deepEqual(
        await codes({
          'no command': () => enqueue(admin, queue, { command: '' }),
          'no such queue to wait in': () => enqueue(admin, 'nobody-knows-it'),
          'no such queue to take from': () => take(admin, 'nobody-knows-it'),
          'a queue of others': () => take(worker, 'default'),
          'a queue that is not one': () => enqueue(admin, 'Not a queue!'),
          'too many leases': () => take(worker, queue, 1, { maxJobs: 1001 }),
          'too long': () => worker.jobs.updateJob({ taskToken, visibilityTimeoutSeconds: 12 * 3600 + 1 }),
          'another queue': () => worker.jobs.updateJob({ taskToken, queue: 'default' }),
          'no token': () => worker.jobs.updateJob({}),
          'not a token': () => worker.jobs.completeJob({ taskToken: 'x y', jobResult: success }),
          'a forged token': () => worker.jobs.completeJob({ taskToken: forged(taskToken), jobResult: success }),
          'another job': () => worker.jobs.completeJob({ taskToken, jobResult: { ...success, jobId: gone } }),
          'no such job': () => admin.jobs.getJob({ jobId: gone }),
          'not an id': () => admin.jobs.getJob({ jobId: 'x' }),
          'no key': () => enqueue(speak(way, ''), queue),
          'a wrong key': () => enqueue(speak(way, 'rv_wrong'), queue),
          'a worker submits': () => enqueue(worker, queue),
          'a worker cancels': () => worker.jobs.cancelJob({ jobId }),
        }),
        {
          'no command': 'InvalidArgument',
          'no such queue to wait in': 'InvalidArgument',
          'no such queue to take from': 'InvalidArgument',
          'a queue of others': 'PermissionDenied',
          'a queue that is not one': 'InvalidArgument',
          'too many leases': 'InvalidArgument',
          'too long': 'InvalidArgument',
          'another queue': 'InvalidArgument',
          'no token': 'InvalidArgument',
          'not a token': 'InvalidArgument',
          'a forged token': 'PermissionDenied',
          'another job': 'InvalidArgument',
          'no such job': 'NotFound',
          'not an id': 'NotFound',
          'no key': 'Unauthenticated',
          'a wrong key': 'Unauthenticated',
          'a worker submits': 'PermissionDenied',
          'a worker cancels': 'PermissionDenied',
        },
      );
      const unknown = await refusal(enqueue(admin, 'nobody-knows-it'));
      assert.match(unknown.message, /queue/);
      for (const _ of ['the end', 'and again, as after a lost answer']) await worker.jobs.completeJob({ taskToken, jobResult: { success: true } });
      assert.equal((await refusal(worker.jobs.updateJob({ taskToken }))).code, 'FailedPrecondition');
      assert.equal((await refusal(worker.jobs.completeJob({ taskToken, jobResult: { success: false, exitCode: 1 } }))).code, 'FailedPrecondition');
      assert.equal((await stateOf(admin, jobId)).state, JobState.COMPLETED);
    });

    test('a key is as good in the other header', async () => {
      const other = speak(way, adminKey, 'x-api-key');
      const { jobId } = await enqueue(other, queue);
      assert.equal((await other.jobs.cancelJob({ jobId })).job.state, JobState.CANCELLED);
    });
  });
}
