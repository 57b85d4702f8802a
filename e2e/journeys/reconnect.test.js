// Following through cut connections and killed servers: the page ends with the stored log.
import assert from 'node:assert/strict';
import { Cuttable } from '../lib/cut.js';
import { journey, world } from '../lib/journey.js';
import { ended, state, wholeText } from '../lib/log.js';

const w = world();
const CUTS = Number(process.env.RUNVOY_E2E_CUTS ?? 20);
const KILLS = Number(process.env.RUNVOY_E2E_KILLS ?? 20);

/** What the server has of a log, by line. */
async function stored(id) {
  const text = await w.server.api(`/executions/${id}/logs?format=ndjson`);
  return text.trim().split('\n').map((line) => JSON.parse(line)).map(({ line, message }) => [line, message]);
}

journey(`the connection is cut ${CUTS} times and no line is lost or repeated`, () => w.stranger(), async ({ page, context, allowed }) => {
  const way = await new Cuttable(w.server.endpoint).start();
  try {
    const settings = JSON.stringify({ endpoint: way.origin, key: w.server.key });
    w.host.allow(way.origin);
    allowed.push(way.origin);
    await context.addInitScript((text) => location.protocol !== 'about:' && localStorage.setItem('runvoy.settings', text), settings);
    const id = await w.server.run(`i=0; while [ $i -lt ${CUTS * 60} ]; do i=$((i+1)); echo "line $i of a long story"; sleep 0.02; done`);
    await page.goto(`${w.host.origin}/?execution_id=${id}`);
    await page.getByText(/^line \d+ of a long story$/).first().waitFor();
    let dropped = 0;
    const states = new Set();
    for (let cuts = 0; cuts < CUTS; cuts += 1) {
      dropped += way.cut();
      await page.waitForTimeout(300 + Math.random() * 500);
      states.add(await state(page).textContent());
    }
    assert.ok(dropped >= CUTS, `${dropped} connections were cut`);
    assert.ok(states.has('reconnecting') || states.has('live') || states.has('polling'), [...states].join());
    await ended(page, 120_000);
    assert.deepEqual(await wholeText(page), await stored(id));
  } finally {
    w.host.allow(w.server.endpoint);
    await way.stop();
  }
});

journey(`the server is killed ${KILLS} times and the page shows the stored log`, () => w.signedIn(), async ({ page }, context) => {
  for (let kills = 0; kills < KILLS; kills += 1) {
    const id = await w.server.run('i=0; while true; do i=$((i+1)); echo "line $i"; sleep 0.01; done');
    await page.goto(w.log(id));
    await page.getByText(/^line \d+$/).nth(5).waitFor();
    await w.server.kill();
    await page.waitForFunction(() => document.querySelector('[data-testid="log-state"]')?.textContent !== 'live');
    await w.server.start();
    await ended(page, 90_000);
    const [shown, kept] = [await wholeText(page), await stored(id)];
    assert.deepEqual(shown, kept, `after kill ${kills + 1}`);
    assert.match(kept.at(-1)[1], /worker/);
    await page.getByRole('heading', { name: /Failed/ }).waitFor();
    context.diagnostic(`kill ${kills + 1}: ${kept.length} lines`);
  }
}, { timeout: 900_000 });

journey('a list stays while the server is unreachable', () => w.signedIn(), async ({ page }) => {
  await w.server.run('echo before the storm');
  await page.goto(w.at('#/executions'));
  await page.getByRole('link', { name: 'echo before the storm' }).waitFor();
  await w.server.kill();
  await page.getByText(/Server unreachable/).waitFor();
  await page.getByRole('link', { name: 'echo before the storm' }).waitFor();
  await w.server.start();
  await w.server.run('echo after the storm');
  await page.getByRole('link', { name: 'echo after the storm' }).waitFor();
});
