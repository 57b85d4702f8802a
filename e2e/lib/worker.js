// A real worker for a journey, in a process and a directory of its own.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binary } from './server.js';

export class Worker {
  constructor(server, key, args) {
    this.data = mkdtempSync(join(tmpdir(), 'runvoy-e2e-worker-'));
    this.env = { ...process.env, RUNVOY_API_ENDPOINT: server.endpoint, RUNVOY_API_KEY: key };
    this.args = ['worker', '--allow-shared-uid', ...args];
  }

  /** Starts it, and waits until it says that it serves. */
  async start() {
    this.child = spawn(binary, [...this.args, '--worker-dir', this.data], { env: this.env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.gone = new Promise((resolve) => this.child.once('exit', resolve));
    await new Promise((resolve, reject) => {
      this.child.stdout.once('data', resolve);
      this.child.once('exit', (code) => reject(new Error(`the worker ended with ${code} before it served`)));
    });
    return this;
  }

  /** Ends it and removes what it kept. */
  async stop() {
    this.child.kill('SIGTERM');
    await this.gone;
    rmSync(this.data, { recursive: true, force: true, maxRetries: 10 });
  }
}
