// A real server for a journey: the program under test on a free port with a data directory of its own.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const binary = process.env.RUNVOY_BIN ?? new URL('../../target/release/runvoy', import.meta.url).pathname;

export class Server {
  constructor(env = {}) {
    if (!existsSync(binary)) throw new Error(`there is no program at ${binary}: build it, or name it in RUNVOY_BIN`);
    this.data = mkdtempSync(join(tmpdir(), 'runvoy-e2e-'));
    this.env = env;
    this.listen = '127.0.0.1:0';
  }

  /** Starts it; once more after a stop or a kill it comes back on the same port. */
  async start() {
    const args = ['serve', '--data-dir', this.data, '--listen', this.listen, '--allow-shared-uid', '--log-level', 'warn'];
    this.child = spawn(binary, args, { env: { ...process.env, ...this.env }, stdio: ['ignore', 'pipe', 'inherit'] });
    this.gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.endpoint = await new Promise((resolve, reject) => {
      let text = '';
      this.child.stdout.on('data', (part) => {
        text += part;
        const found = /listening on (http:\/\/\S+)/.exec(text);
        if (found) resolve(found[1]);
      });
      this.child.once('exit', (code) => reject(new Error(`the server ended with ${code} before it listened`)));
    });
    this.listen = new URL(this.endpoint).host;
    this.key = readFileSync(join(this.data, 'admin.key'), 'utf8').trim();
    return this;
  }

  /** Ends it at once, as a crash would. */
  async kill() {
    this.child.kill('SIGKILL');
    await this.gone;
  }

  /** Ends it and removes what it kept. Not by a signal that it could answer: it would give each command time to end. */
  async stop() {
    await this.kill();
    rmSync(this.data, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Calls the API past the page: to prepare a journey, and to see what the page did. */
  async api(path, body, { key = this.key, method = body === undefined ? 'GET' : 'POST' } = {}) {
    const headers = { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const response = await fetch(`${this.endpoint}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text && response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text;
  }

  /** Runs a command and gives its execution's id. */
  async run(command, more = {}) {
    return (await this.api('/run', { command, ...more })).execution_id;
  }

  /** Waits until an execution has ended. */
  async ended(id) {
    for (;;) {
      const status = await this.api(`/executions/${id}/wait?timeout=30`);
      if (['SUCCEEDED', 'FAILED', 'STOPPED'].includes(status.status)) return status;
    }
  }

  /** A user with a key of their own. */
  async user(email, role) {
    const { claim_token: token } = await this.api('/users/create', { email, role });
    const { api_key: key } = await this.api(`/claim/${token}`, {}, { key: '' });
    return { email, role, key };
  }
}
