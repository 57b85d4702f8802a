// The four ways to speak to the server, and what the journeys share.
import { randomUUID } from 'node:crypto';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { JobEventsService, JobService } from '../gen/job/v1/job_pb.js';
import { CredentialService } from '../gen/principal/v1/principal_pb.js';

export const url = process.env.RUNVOY_URL;
export const adminKey = process.env.RUNVOY_KEY;
export const workerKey = process.env.RUNVOY_WORKER_KEY;

const WAYS = {
  'connect-json': (options) => createConnectTransport({ ...options, httpVersion: '1.1', useBinaryFormat: false }),
  'connect-binary': (options) => createConnectTransport({ ...options, httpVersion: '2', useBinaryFormat: true }),
  grpc: (options) => createGrpcTransport(options),
  'grpc-web': (options) => createGrpcWebTransport({ ...options, httpVersion: '1.1' }),
};

export const ways = Object.keys(WAYS);

/** Clients of all services that show this key, in one of two headers. */
export function speak(way, key, header = 'authorization') {
  const show = (next) => (request) => {
    if (key) request.header.set(header, header === 'authorization' ? `Bearer ${key}` : key);
    return next(request);
  };
  const transport = WAYS[way]({ baseUrl: url, interceptors: [show] });
  return {
    jobs: createClient(JobService, transport),
    events: createClient(JobEventsService, transport),
    credentials: createClient(CredentialService, transport),
  };
}

/** Waits for a call to be refused, and tells how: the name of its code, and its message. */
export async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    return { code: Code[error.code], message: error.rawMessage };
  }
  throw new Error('it was not refused');
}

/** The first `count` leases of a queue. */
export async function take(client, queue, count = 1, more = {}) {
  const leases = [];
  for await (const lease of client.jobs.dequeueJob({ queue, maxJobs: count, ...more })) {
    leases.push(lease);
    if (leases.length === count) break;
  }
  return leases;
}

/** A job that nobody else takes: the queue is this test's own. */
export async function enqueue(client, queue, jobParams = {}, requestId = randomUUID()) {
  return client.jobs.enqueueJob({ requestId, queue, jobParams: { command: 'true', ...jobParams } });
}

/** A token with another signature. The character stands before the last ones, some of whose bits must be zero for it to be a token at all. */
export function forged(token) {
  const at = token.length - 8;
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

/** Where a job stands. */
export async function stateOf(client, jobId) {
  return (await client.jobs.getJob({ jobId })).job;
}

/** What a job wrote, as anybody reads it over HTTP. */
export async function logOf(jobId) {
  const answer = await fetch(`${url}/api/v1/executions/${jobId}/logs?format=raw`, { headers: { 'x-api-key': adminKey } });
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return Buffer.from(await answer.arrayBuffer()).toString();
}

/** A stream that can be read one message at a time, and left. */
export class Reader {
  constructor(start) {
    this.abort = new AbortController();
    this.messages = start({ signal: this.abort.signal })[Symbol.asyncIterator]();
  }

  async next() {
    const { done, value } = await this.messages.next();
    return done ? undefined : value;
  }

  /** Whether a message comes within this time; it can be had from `next` then. */
  async comesWithin(ms) {
    const pending = this.messages.next();
    const came = await Promise.race([pending.then(() => true), new Promise((resolve) => setTimeout(resolve, ms, false))]);
    const messages = this.messages;
    this.messages = {
      next: () => {
        this.messages = messages;
        return pending;
      },
    };
    return came;
  }

  leave() {
    this.abort.abort();
  }
}

/** Something to publish that is fed while it is sent. */
export class Feed {
  #queue = [];
  #wake = () => {};
  #closed = false;

  push(...messages) {
    this.#queue.push(...messages);
    this.#wake();
  }

  close() {
    this.#closed = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#queue.length) yield this.#queue.shift();
      if (this.#closed) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}
