// Chromium, and pages that notice what must never happen: a dialog, an error in the page, a request
// to another host.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--js-flags=--expose-gc',
  '--enable-precise-memory-info',
];

export async function launch() {
  const executablePath = process.env.RUNVOY_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
  if (!executablePath) throw new Error('there is no Chromium: apt-get install chromium, or name one in RUNVOY_CHROMIUM');
  const start = () => chromium.launch({ executablePath, args: ARGS, headless: process.env.RUNVOY_HEADED !== '1' });
  // Chromium itself may crash at its start, before it has seen a page.
  return start().catch(start);
}

/** A fresh visitor. `allowed` are the origins that their page may talk to. */
export async function visitor(browser, { allowed, ...options }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB', ...options });
  const seen = { dialogs: [], errors: [], foreign: [] };
  const isForeign = (url) => !/^(data|blob|about):/.test(url) && !allowed.some((origin) => url.startsWith(origin));
  await context.route('**', (route) => {
    const url = route.request().url();
    if (!isForeign(url)) return route.continue();
    seen.foreign.push(url);
    return route.abort();
  });
  context.on('page', (page) => {
    page.on('dialog', (dialog) => {
      seen.dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => seen.errors.push(String(error.stack ?? error)));
    page.on('console', (message) => {
      // What the network says of refused calls is the page's business, and it shows it.
      if (message.type() === 'error' && !/Failed to load resource|WebSocket connection to|ERR_CONNECTION|blocked by CORS/.test(message.text())) seen.errors.push(message.text());
    });
    page.on('websocket', (socket) => {
      const url = socket.url().replace(/^ws/, 'http');
      if (isForeign(url)) seen.foreign.push(url);
    });
  });
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env.RUNVOY_E2E_PATIENCE ?? 15_000));
  return { context, page, seen, allowed };
}
