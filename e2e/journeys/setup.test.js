// Sign-in: an API key, an invitation, a server elsewhere, and where the key is stored.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';

const w = world();

async function begin(page, address = w.at('')) {
  await page.goto(address);
  await page.getByRole('heading', { name: 'runvoy' }).waitFor();
}

journey('a wrong key is refused, the right one signs in', () => w.stranger(), async ({ page }) => {
  await begin(page);
  await page.getByLabel('API key').fill('rv_nonsense');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('API key').fill(w.server.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
  await page.getByText('No executions yet').waitFor();
});

journey('the key is stored in local storage only', () => w.stranger(), async ({ page, context }) => {
  const addresses = [];
  page.on('request', (request) => addresses.push(request.url()));
  await begin(page);
  await page.getByLabel('API key').fill(w.server.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
  for (const place of ['Jobs', 'Locks', 'Settings']) await page.getByRole('link', { name: place, exact: true }).click();
  addresses.push(page.url());
  assert.ok(addresses.length > 5);
  assert.deepEqual(addresses.filter((address) => address.includes(w.server.key)), []);
  assert.deepEqual(await context.cookies(), []);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.match(await page.evaluate(() => localStorage.getItem('runvoy.settings')), new RegExp(w.server.key));
  await page.reload();
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  await page.getByRole('button', { name: /Sign out/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem('runvoy.settings')), null);
});

journey('an invitation token is exchanged for a key once', () => w.signedIn(), async ({ page }) => {
  await page.goto(w.at('#/users'));
  await page.getByRole('button', { name: 'Invite user' }).click();
  await page.getByLabel('E-mail').fill('ana@example.com');
  await page.getByRole('radio', { name: /^viewer/ }).check();
  await page.getByRole('button', { name: 'Create invitation' }).click();
  const token = await page.getByLabel('Invitation token').inputValue();
  const claimant = await w.stranger();
  const claim = async () => {
    await claimant.page.getByRole('button', { name: 'I have an invitation' }).click();
    await claimant.page.getByLabel('Invitation token').fill(token);
    await claimant.page.getByRole('button', { name: 'Accept invitation' }).click();
  };
  await begin(claimant.page);
  await claim();
  await claimant.page.getByText('ana@example.com').waitFor();
  await claimant.page.goto(w.at('#/settings'));
  await claimant.page.getByText('viewer', { exact: true }).waitFor();
  await claimant.page.getByRole('button', { name: /Sign out/ }).click();
  await claimant.page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
  await claim();
  await claimant.page.getByRole('alert').getByText(/already|claimed|used/i).waitFor();
  claimant.check();
  await claimant.context.close();
});

journey('a key revoked while in use leads to sign-in', () => w.signedIn(), async ({ page }) => {
  const { key, email } = await w.server.user('gone@example.com', 'operator');
  const theirs = await w.signedIn(key);
  await theirs.page.goto(w.at('#/executions'));
  await theirs.page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
  await page.goto(w.at('#/users'));
  await page.getByRole('row', { name: email }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await theirs.page.getByText(/Your key is no longer valid/).waitFor();
  await theirs.context.close();
});

journey('the bundle works from a static host', () => w.stranger(), async ({ page }) => {
  await begin(page, `${w.host.origin}/`);
  await page.getByLabel('Server').fill(w.server.endpoint);
  await page.getByLabel('API key').fill(w.server.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Executions', exact: true }).waitFor();
  const id = await w.server.run('echo from elsewhere');
  await page.goto(`${w.host.origin}/?execution_id=${id}`);
  await page.getByText('from elsewhere', { exact: true }).waitFor();
});

journey('a chosen theme is stored, the default is the system’s', () => w.signedIn(undefined, { colorScheme: 'dark' }), async ({ page }) => {
  await page.goto(w.at('#/settings'));
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  const dark = await ground();
  await page.getByRole('group', { name: 'Theme' }).first().getByRole('button', { name: 'Light' }).click();
  assert.notEqual(await ground(), dark);
  await page.reload();
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
  assert.notEqual(await ground(), dark);
});
