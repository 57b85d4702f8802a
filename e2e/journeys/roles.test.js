// The actions that each role sees: no button whose call the server would refuse.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { rows } from '../lib/log.js';

const keys = {};
const made = {};

const w = world(async () => {
  keys.admin = w.server.key;
  for (const role of ['operator', 'developer', 'viewer']) keys[role] = (await w.server.user(`${role}@example.com`, role)).key;
  made.admins = await w.server.run('echo of the admin; sleep 600', { lock: 'held' });
  made.developers = (await w.server.api('/run', { command: 'echo of the developer; sleep 600' }, { key: keys.developer })).execution_id;
  await w.server.api('/secrets', { name: 'shared', key_name: 'SHARED', value: 'nobody should read this', use_by: ['role:developer', 'role:viewer'] });
});

const OFFERED = {
  admin: { run: true, users: true, audit: true, killsAll: true, release: true, images: true, secrets: true, doctor: true },
  operator: { run: true, users: false, audit: false, killsAll: true, release: false, images: true, secrets: true, doctor: false },
  developer: { run: true, users: false, audit: false, killsAll: false, release: false, images: false, secrets: true, doctor: false },
  viewer: { run: false, users: false, audit: false, killsAll: false, release: false, images: false, secrets: false, doctor: false },
};

for (const [role, offered] of Object.entries(OFFERED)) {
  journey(`${role} sees exactly the actions that the role allows`, () => w.signedIn(keys[role]), async ({ page }) => {
    const has = async (by, name) => (await page.getByRole(by, { name, exact: true }).count()) > 0;
    await page.goto(w.at('#/executions'));
    await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
    assert.equal(await has('link', 'Run a command'), offered.run);
    assert.equal(await has('link', 'Users'), offered.users);
    assert.equal(await has('link', 'Audit'), offered.audit);
    await page.goto(w.at('#/locks'));
    await page.getByText('held', { exact: true }).waitFor();
    assert.equal(await has('button', 'Release'), offered.release);
    await page.goto(w.at('#/images'));
    await page.getByText('default').waitFor();
    assert.equal(await has('button', 'Register image'), offered.images);
    await page.goto(w.at('#/secrets'));
    await page.getByRole('heading', { name: 'Secrets' }).waitFor();
    assert.equal(await has('button', 'Add secret'), offered.secrets);
    await page.goto(w.at('#/health'));
    await page.getByText('Healthy').first().waitFor();
    assert.equal(await has('heading', 'Server checks'), offered.doctor);
    await page.goto(w.log(made.admins));
    if (role === 'developer') {
      await page.getByRole('alert').getByText(/not found/).waitFor();
    } else {
      await page.getByText('of the admin', { exact: true }).waitFor();
      assert.equal(await has('button', 'Kill'), offered.killsAll);
    }
    for (const hidden of ['users', 'audit', 'run'].filter((name) => !offered[name])) {
      await page.goto(w.at(`#/${hidden}`));
      await page.getByText(/Page not found/).waitFor();
    }
  });
}

journey('a developer sees and kills only their own executions', () => w.signedIn(keys.developer), async ({ page }) => {
  await page.goto(w.at('#/executions'));
  await page.getByRole('link', { name: /of the developer/ }).waitFor();
  await rows(page, 1);
  await page.goto(w.log(made.developers));
  await page.getByRole('button', { name: 'Kill', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).click();
  await page.getByRole('heading', { name: /Stopped/ }).waitFor();
});

journey('a secret that is only usable cannot be shown', () => w.signedIn(keys.developer), async ({ page }) => {
  await page.goto(w.at('#/secrets'));
  await page.getByRole('cell', { name: 'shared', exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Show' }).count(), 0);
  assert.ok(!(await page.content()).includes('nobody should read this'));
  await page.goto(w.at('#/run'));
  await page.getByRole('checkbox', { name: /shared/ }).check();
  await page.getByLabel('Command').fill('echo "got ${#SHARED} characters: $SHARED"');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText(/got 23 characters/).waitFor();
  assert.ok(!(await page.getByTestId('log-scroller').textContent()).includes('nobody should read this'));
});
