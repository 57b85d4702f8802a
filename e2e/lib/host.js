// A static host: serves the built bundle, with the strict policy of the server's own page.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';

const dist = process.env.RUNVOY_WEB_DIST ?? new URL('../../web/dist', import.meta.url).pathname;
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

export class Host {
  async start() {
    this.server = createServer((request, response) => void this.answer(request, response));
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  /** The server that its pages may call. */
  allow(endpoint) {
    this.endpoint = endpoint;
  }

  async answer(request, response) {
    const { pathname } = new URL(request.url, this.origin);
    if (pathname === '/runvoy.json') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ endpoint: this.endpoint }));
      return;
    }
    const file = normalize(pathname === '/' ? '/index.html' : pathname);
    try {
      const body = await readFile(join(dist, file));
      const connect = `${this.endpoint} ${this.endpoint?.replace('http', 'ws')}`;
      response.writeHead(200, {
        'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
        'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ${connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html`,
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
