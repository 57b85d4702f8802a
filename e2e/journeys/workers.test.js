// Workers and queues: a key is created in the page, a real worker signs in with it, and a queue is
// paused and unpaused.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { Worker } from '../lib/worker.js';

const keys = {};
const w = world(async () => {
  for (const role of ['operator', 'developer']) keys[role] = (await w.server.user(`${role}@example.com`, role)).key;
});

journey('a worker signs in with a key created in the page', () => w.signedIn(), async ({ page }) => {
  const waiting = await w.server.run('echo hello from afar', { queue: 'builds' });
  await page.goto(w.at('#/queues'));
  await page.getByRole('row', { name: /builds.*no worker/ }).waitFor();
  await page.goto(w.log(waiting));
  await page.getByText(/no worker serves queue builds/).first().waitFor();
  await page.goto(w.at('#/workers'));
  await page.getByText('in the server').waitFor();
  await page.getByLabel('Account name').fill('build-1');
  await page.getByLabel('Allowed queues').fill('builds');
  await page.getByRole('button', { name: 'Create key' }).click();
  const key = await page.getByLabel('New key').inputValue();
  const worker = await new Worker(w.server, key, ['--queue', 'builds', '--concurrency', '2', '--labels', 'disk=ssd']).start();
  try {
    const row = page.getByRole('row', { name: /disk=ssd.*builds.*online/ });
    await row.waitFor();
    assert.equal((await w.server.ended(waiting)).status, 'SUCCEEDED');
    await page.getByRole('button', { name: 'Done' }).click();
    assert.ok(!(await page.content()).includes(key), 'it is not shown again');
    await page.goto(w.log(waiting));
    await page.getByText('hello from afar', { exact: true }).waitFor();
  } finally {
    await worker.stop();
  }
  await page.goto(w.at('#/workers'));
  await page.getByRole('row', { name: /build-1.*builds/ }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
  await page.getByText('revoked', { exact: true }).waitFor();
});

journey('a queue is paused with a reason, and unpaused', () => w.signedIn(keys.operator), async ({ page }) => {
  await page.goto(w.at('#/queues'));
  const change = page.getByRole('row', { name: /^default/ }).getByRole('button', { name: 'Edit' });
  await change.click();
  await page.getByRole('checkbox', { name: /Paused/ }).check();
  await page.getByLabel('Reason (shown to waiting users)').fill('the database moves');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('paused: the database moves').waitFor();
  const held = await w.server.run('echo at last');
  await page.goto(w.log(held));
  await page.getByText(/paused/).first().waitFor();
  await page.goto(w.at('#/queues'));
  await change.click();
  await page.getByRole('checkbox', { name: /Paused/ }).uncheck();
  await page.getByRole('button', { name: 'Save' }).click();
  assert.equal((await w.server.ended(held)).status, 'SUCCEEDED');
});

journey('a developer cannot edit queues or create worker keys', () => w.signedIn(keys.developer), async ({ page }) => {
  await page.goto(w.at('#/queues'));
  await page.getByRole('row', { name: /^default/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0);
  await page.goto(w.at('#/workers'));
  await page.getByText('in the server').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Create key' }).count(), 0);
});
