// Every page through axe, in both themes and on a phone: no violation.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { journey, world } from '../lib/journey.js';
import { populate } from '../lib/populate.js';

let made;
const w = world(async ({ server }) => (made = await populate(server)));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const LOOKS = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  'a phone': { colorScheme: 'light', viewport: { width: 390, height: 844 } },
};

/** What axe finds, in words short enough to act on. */
async function violations(page) {
  // The page's own policy takes no script from elsewhere; the driver's way in is not the page's.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ''}`).join(' | ')}`);
}

for (const [name, options] of Object.entries(LOOKS)) {
  journey(`no violation in ${name}`, () => w.signedIn(undefined, options), async ({ page }) => {
    const places = [
      ...['executions', 'executions?text=terraform', 'executions?lock=none', 'jobs', `jobs/${made.job}`, `jobs/${made.job}?task=test-unit`, 'jobs/new', 'run', 'locks'],
      ...['queues', 'queues/default', 'workers', 'health', 'cost', 'images', 'secrets', 'users', 'audit', 'settings', 'nowhere'],
    ].map((path) => w.at(`#/${path}`));
    const logs = [made.failed, made.colours, made.running, made.waiting, made.stopped, 'nothing'].map((id) => w.log(id));
    const found = {};
    for (const place of [...places, ...logs]) {
      await page.goto(place);
      await page.locator('h1, h2, [role=alert]').first().waitFor();
      await page.waitForTimeout(400);
      const list = await violations(page);
      if (list.length) found[place.replace(w.origin, '')] = list;
    }
    assert.deepEqual(found, {});
  }, { timeout: 300_000 });

  journey(`no violation in ${name}: sign-in, dialogs, menus`, () => w.stranger(options), async ({ page }) => {
    const found = {};
    const look = async (what) => {
      await page.waitForTimeout(300);
      const list = await violations(page);
      if (list.length) found[what] = list;
    };
    await page.goto(w.at(''));
    await page.getByLabel('API key').waitFor();
    await look('set-up');
    await page.getByRole('button', { name: 'I have an invitation' }).click();
    await look('claim');
    await page.getByRole('button', { name: 'I have an API key' }).click();
    await page.getByLabel('API key').fill(w.server.key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
    const open = async (path, button, what) => {
      await page.goto(path);
      await page.getByRole('button', { name: button }).first().click();
      await look(what);
    };
    await open(w.at('#/users'), 'Invite user', 'invite');
    await open(w.at('#/secrets'), 'Add secret', 'secret');
    await open(w.at('#/images'), 'Register image', 'image');
    await open(w.log(made.running), 'Kill', 'kill');
    await open(w.log(made.failed), 'Share…', 'share');
    await open(w.log(made.failed), 'Events', 'events');
    await open(w.log(made.failed), 'View', 'view menu');
    await open(w.log(made.failed), 'Download', 'download menu');
    await page.goto(w.log(made.failed, '#L3-L9'));
    await page.locator('.log-chosen').first().waitFor();
    await look('chosen lines');
    await page.getByLabel('Search the whole log').fill('created');
    await page.locator('.log-hit').first().waitFor();
    await look('search');
    if (options.viewport) await open(w.at('#/executions'), 'Menu', 'menu');
    assert.deepEqual(found, {});
  });
}
