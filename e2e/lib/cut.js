// A TCP proxy that drops all connections on demand.
import { connect, createServer } from 'node:net';

export class Cuttable {
  constructor(target) {
    this.target = new URL(target);
    this.open = new Set();
  }

  async start() {
    this.server = createServer((near) => {
      const far = connect(Number(this.target.port), this.target.hostname);
      for (const socket of [near, far]) {
        this.open.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.open.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far);
      far.pipe(near);
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  cut() {
    const count = this.open.size;
    for (const socket of this.open) socket.destroy();
    return count;
  }

  async stop() {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
