// The world of a journey: one server, one browser, and the page: the server's own where it has one.
import assert from 'node:assert/strict';
import { launch, visitor } from './browser.js';
import { Host } from './host.js';
import { Server } from './server.js';

export class World {
  async start(env = {}) {
    this.host = await new Host().start();
    this.server = await new Server({ RUNVOY_CORS_ORIGINS: this.host.origin, ...env }).start();
    this.host.allow(this.server.endpoint);
    this.browser = await launch();
    const home = await (await fetch(this.server.endpoint)).text();
    /** Whether the page of the program is used, not a bundle on a static host. */
    this.built = !process.env.RUNVOY_WEB_DIST && home.includes('id="app"');
    this.origin = this.built ? this.server.endpoint : this.host.origin;
    return this;
  }

  async stop() {
    await this.browser?.close();
    await this.server?.stop();
    await this.host?.stop();
  }

  /** A browser without a key. */
  async stranger(options = {}) {
    const made = await visitor(this.browser, { allowed: [this.origin, this.server.endpoint, this.host.origin], ...options });
    return Object.assign(made, { check: () => clean(made.seen) });
  }

  /** A browser with a key. */
  async signedIn(key = this.server.key, options = {}) {
    const made = await this.stranger(options);
    const settings = JSON.stringify({ endpoint: this.built ? this.origin : this.server.endpoint, key });
    await made.context.addInitScript((text) => {
      // A page that has not gone anywhere yet has no storage.
      if (location.protocol !== 'about:') localStorage.setItem('runvoy.settings', text);
    }, settings);
    return made;
  }

  /** The address of a page. */
  at(path) {
    return `${this.origin}/${path}`;
  }

  /** The address of an execution's page. */
  log(id, fragment = '') {
    return `${this.origin}/${this.built ? 'logs' : ''}?execution_id=${id}${fragment}`;
  }
}

/** Nothing happened that must never happen. */
function clean(seen) {
  assert.deepEqual(seen, { dialogs: [], errors: [], foreign: [] });
}
