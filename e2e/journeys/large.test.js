// A log of a million lines: node count and heap stay small. Times are printed, not asserted.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { ended, row } from '../lib/log.js';

const w = world();
const LINES = Number(process.env.RUNVOY_E2E_LINES ?? 1_000_000);
const MOST_NODES = 2_000;
const MOST_HEAP = 200 * 1024 * 1024;

/** The size of the page after a garbage collection. */
async function weigh(page) {
  return page.evaluate(() => {
    globalThis.gc?.();
    return { nodes: document.querySelectorAll('*').length, heap: performance.memory.usedJSHeapSize };
  });
}

const small = ({ nodes, heap }) => {
  assert.ok(nodes < MOST_NODES, `${nodes} nodes`);
  assert.ok(heap < MOST_HEAP, `${heap} bytes of heap`);
};

journey(`${LINES.toLocaleString('en')} lines keep the page small`, () => w.signedIn(), async ({ page }, context) => {
  const id = await w.server.run(`seq -f 'line %.0f of very many, with some text behind it' 1 ${LINES}`);
  await w.server.ended(id);
  const timed = async (what, act) => {
    const from = performance.now();
    await act();
    context.diagnostic(`${what}: ${Math.round(performance.now() - from)} ms`);
  };
  await page.goto(w.at('#/executions'));
  await page.getByRole('link', { name: /^seq/ }).waitFor();
  await timed('opened', async () => {
    await page.getByRole('link', { name: /^seq/ }).click();
    await page.locator('.log-row .log-text').first().waitFor();
  });
  await ended(page);
  small(await weigh(page));
  const scroller = page.getByTestId('log-scroller');
  await scroller.focus();
  await page.keyboard.press('Home');
  await row(page, 2).locator('.log-text').waitFor();
  await timed('jumped to the end', async () => {
    await page.keyboard.press('End');
    await row(page, LINES + 1).locator('.log-text').waitFor();
  });
  assert.match(await row(page, LINES + 1).textContent(), new RegExp(`line ${LINES} of very many`));
  await timed('found the last line', async () => {
    await page.getByLabel('Search the whole log').fill(`line ${LINES - 1} of`);
    await page.getByText(/1 of 1/).waitFor();
  });
  await timed('went to the middle by its address', async () => {
    await page.goto(w.log(id, `#L${LINES / 2}`));
    await row(page, LINES / 2).locator('.log-text').waitFor();
  });
  await scroller.hover();
  for (let turns = 0; turns < 150; turns += 1) await page.mouse.wheel(0, turns % 3 ? 1_800 : -900);
  for (let part = 1; part <= 40; part += 1) {
    await scroller.evaluate((element, to) => (element.scrollTop = element.scrollHeight * to), (part * 7919) % 41 / 41);
    await page.waitForTimeout(40);
  }
  await page.locator('.log-row .log-text').first().waitFor();
  const after = await weigh(page);
  context.diagnostic(`${after.nodes} nodes, ${Math.round(after.heap / 1024 / 1024)} MiB of heap`);
  small(after);
}, { timeout: 300_000 });

journey('a line of 20 MB does not freeze the page', () => w.signedIn(), async ({ page }, context) => {
  const id = await w.server.run("echo before; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo behind it");
  await w.server.ended(id);
  const from = performance.now();
  await page.goto(w.log(id));
  await ended(page);
  await page.getByText('behind it', { exact: true }).waitFor();
  context.diagnostic(`shown after ${Math.round(performance.now() - from)} ms`);
  small(await weigh(page));
  await page.getByTestId('log-scroller').focus();
  await page.keyboard.press('Home');
  await page.getByText('before', { exact: true }).waitFor();
});
