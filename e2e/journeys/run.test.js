// Daily use: run, follow, search, link to a line, kill, rerun, share.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { ended, row, rows, state, wholeText } from '../lib/log.js';

const w = world();

const idOf = (page) => new URL(page.url()).searchParams.get('execution_id');

journey('a command runs from the form and is followed', () => w.signedIn(), async ({ page }) => {
  await page.goto(w.at('#/run'));
  await page.getByLabel('Command').fill('echo "hello $WHO"; sleep 1; echo "second line" >&2; sleep 1; echo last');
  await page.getByRole('button', { name: '+ Add variable' }).click();
  await page.getByLabel('variable 1 name').fill('WHO');
  await page.getByLabel('variable 1 value').fill('world');
  await page.getByLabel('Command').press('Control+Enter');
  await page.getByText('hello world', { exact: true }).waitFor();
  assert.equal(await state(page).textContent(), 'live');
  await page.getByText('last', { exact: true }).waitFor();
  await ended(page);
  await page.getByRole('heading', { name: /Succeeded/ }).waitFor();
  await page.getByRole('button', { name: 'Events' }).click();
  await page.getByRole('cell', { name: 'Task Completed' }).waitFor();
});

journey('a failed execution shows its reason above the log', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('echo working; exit 42');
  await w.server.ended(id);
  await page.goto(w.log(id));
  const reason = page.getByText('exit code 42', { exact: true });
  await reason.waitFor();
  const log = page.getByTestId('log-scroller');
  await row(page, 2).waitFor();
  assert.ok((await reason.boundingBox()).y < (await log.boundingBox()).y);
  await page.getByRole('heading', { name: /Failed/ }).waitFor();
});

journey('search covers the whole log, with count and next match', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('for i in $(seq 1 20000); do echo "line $i"; done; echo "the needle"');
  await w.server.ended(id);
  await page.goto(w.log(id));
  await ended(page);
  await page.getByLabel('Search the whole log').fill('line 1234');
  // Line 1234 itself and 12340 to 12349.
  await page.getByText(/of 11/).waitFor();
  await page.locator('.log-hit').first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByText(/[12] of 11/).first().waitFor();
  await page.getByLabel('Search the whole log').fill('needle');
  await page.getByText(/1 of 1/).waitFor();
  await page.locator('.log-text', { hasText: 'the needle' }).waitFor();
});

journey('a line link opens at those lines', () => w.signedIn(), async ({ page, context }) => {
  const id = await w.server.run('seq 1 5000');
  await w.server.ended(id);
  await page.goto(w.log(id, '#L3000-L3004'));
  await row(page, 3002).waitFor();
  assert.equal(await page.locator('.log-row.log-chosen').count(), 5);
  assert.equal(await row(page, 3000).locator('.log-text').textContent(), '2999');
  await row(page, 3008).getByRole('link', { name: 'line 3008' }).click();
  await page.waitForURL(/#L3008$/);
  const other = await context.newPage();
  await other.goto(page.url());
  await row(other, 3008).waitFor();
  assert.match(await row(other, 3008).getAttribute('class'), /log-chosen/);
});

journey('a kill asks for confirmation first', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('echo started; sleep 600');
  await page.goto(w.log(id));
  await page.getByText('started', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Kill', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await w.server.api(`/executions/${id}`)).status, 'RUNNING');
  await page.getByRole('button', { name: 'Kill', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).click();
  await page.getByRole('heading', { name: /Stopped/ }).waitFor();
  await page.getByText(/killed by admin@localhost/).first().waitFor();
  await ended(page);
  assert.equal(await page.getByRole('button', { name: 'Kill', exact: true }).count(), 0);
});

journey('an execution is rerun, unchanged or edited', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('echo again and again', { labels: { team: 'web' } });
  await w.server.ended(id);
  await page.goto(w.log(id));
  await page.getByRole('button', { name: 'Rerun' }).click();
  await page.waitForURL((url) => url.searchParams.get('execution_id') !== id);
  await page.getByText('again and again', { exact: true }).waitFor();
  const second = idOf(page);
  assert.equal((await w.server.api(`/executions/${second}`)).command, 'echo again and again');
  await page.getByRole('link', { name: 'Edit and rerun' }).click();
  await page.waitForFunction(() => document.querySelector('#command')?.value === 'echo again and again');
  await page.getByLabel('Command').fill('echo changed');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('changed', { exact: true }).waitFor();
  assert.equal((await w.server.api(`/executions/${idOf(page)}`)).labels.team, 'web');
});

journey('a held lock names its holder and can be waited for', () => w.signedIn(), async ({ page }) => {
  const holder = await w.server.run('sleep 600', { lock: 'production' });
  await page.goto(w.at('#/run'));
  await page.getByLabel('Command').fill('echo mine now');
  await page.getByLabel('Lock').fill('production');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('alert').getByText(/held by admin@localhost/).waitFor();
  await page.getByRole('button', { name: 'Wait for the lock' }).click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('heading', { name: /Queued/ }).waitFor();
  await page.getByText(/lock production, held by admin@localhost/).first().waitFor();
  await w.server.api(`/executions/${holder}/kill`, {});
  await page.getByText('mine now', { exact: true }).waitFor();
});

journey('a signed link opens one log only', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('echo shared with you');
  const other = await w.server.run('echo not shared');
  await w.server.ended(id);
  await page.goto(w.log(id));
  await page.getByRole('button', { name: 'Share…' }).click();
  const link = await page.getByLabel('Shared link').inputValue();
  assert.match(link, /#token=/);
  const guest = await w.stranger();
  const sent = [];
  guest.page.on('request', (request) => sent.push(request.url()));
  await guest.page.goto(w.log(id, new URL(link).hash));
  await guest.page.getByText('shared with you', { exact: true }).waitFor();
  assert.equal(await guest.page.getByRole('button', { name: /Kill|Run/ }).count(), 0);
  assert.deepEqual(sent.filter((address) => /[?&]token=/.test(address) && !/\/stream\?/.test(address)), [], 'the token is in no address');
  await guest.page.goto(w.log(other, new URL(link).hash));
  await guest.page.getByRole('alert').first().waitFor();
  guest.check();
  await guest.context.close();
});

journey('executions are filtered and the list updates itself', () => w.signedIn(), async ({ page }) => {
  const ops = await w.server.user('ops@example.com', 'operator');
  const failed = await w.server.run('echo unusual; exit 9');
  const { jobId } = await w.server.api('/jobs', { tasks: [{ taskId: 'one', command: 'echo of the job' }] });
  await w.server.api('/run', { command: 'echo by ops', lock: 'staging' }, { key: ops.key });
  await w.server.ended(failed);
  await page.goto(w.at('#/executions?status=FAILED'));
  await page.getByRole('link', { name: /unusual/ }).waitFor();
  await page.getByRole('row', { name: /Succeeded/ }).first().waitFor({ state: 'detached' });
  await page.goto(w.at('#/executions'));
  await page.getByLabel('User').fill('ops@example.com');
  await page.keyboard.press('Enter');
  await page.waitForURL(/user=ops/);
  await page.getByRole('link', { name: 'echo by ops' }).waitFor();
  await rows(page, 1);
  await page.goto(w.at('#/executions?lock=staging'));
  await page.getByRole('link', { name: 'echo by ops' }).waitFor();
  await page.goto(w.at(`#/executions?job=${jobId}`));
  await page.getByRole('link', { name: 'echo of the job' }).waitFor();
  await rows(page, 1);
  await page.goto(w.at('#/executions'));
  await page.getByLabel('Search commands and labels').fill('unusual');
  await page.keyboard.press('Enter');
  await page.getByText(/1 match in/).waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await w.server.run('echo it is new here');
  await page.getByRole('link', { name: 'echo it is new here' }).waitFor();
});

journey('older executions are paged', () => w.signedIn(), async ({ page }) => {
  for (let i = 0; i < 120; i += 1) await w.server.run(`true ${i}`, { lock_wait: 600, lock: 'paging' });
  await page.goto(w.at('#/executions?lock=paging'));
  await page.getByRole('link', { name: 'true 119' }).waitFor();
  await rows(page, 50);
  await page.getByRole('link', { name: 'Older' }).click();
  await page.getByRole('link', { name: 'true 69' }).waitFor();
  await page.getByRole('link', { name: 'Older' }).click();
  await page.getByRole('link', { name: 'true 0', exact: true }).waitFor();
  await rows(page, 20);
  await page.getByText('End of the list').waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'true 69' }).waitFor();
  await page.getByRole('link', { name: 'Newest' }).click();
  await page.getByRole('link', { name: 'true 119' }).waitFor();
});

journey('a failure is found, read and rerun by keyboard', () => w.signedIn(), async ({ page }) => {
  const id = await w.server.run('echo by keyboard; exit 5');
  await w.server.ended(id);
  await page.goto(w.at('#/executions?status=FAILED'));
  await page.getByRole('link', { name: /by keyboard/ }).waitFor();
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press('Tab');
      const here = await page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
      if (wanted.test(here)) {
        const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
        assert.notEqual(outline, 'none', `the focus on ${here} can be seen`);
        return;
      }
    }
    assert.fail(`${wanted} cannot be reached with Tab`);
  };
  await tabTo(/^Skip to content$/);
  await page.keyboard.press('Enter');
  await tabTo(/by keyboard/);
  await page.keyboard.press('Enter');
  await page.getByText('by keyboard', { exact: true }).waitFor();
  await tabTo(/^Rerun$/);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('execution_id') !== id);
  await ended(page);
  assert.equal((await wholeText(page)).length, 3);
});
