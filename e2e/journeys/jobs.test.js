// Jobs: the live graph, task logs, resume, add tasks, cancel.
import assert from 'node:assert/strict';
import { journey, world } from '../lib/journey.js';
import { rows } from '../lib/log.js';

const w = world();
const task = (page, name) => page.getByRole('region', { name: 'Job graph' }).getByRole('link', { name });

journey('a job is previewed, submitted and drawn live', () => w.signedIn(), async ({ page }) => {
  await page.goto(w.at('#/jobs/new'));
  const tasks = [
    { taskId: 'first', command: 'echo one' },
    { taskId: 'left', command: 'sleep 2; echo two', dependsOn: ['first'] },
    { taskId: 'right', command: 'echo three', dependsOn: ['first'] },
    { taskId: 'last', command: 'echo four', dependsOn: ['left', 'right'] },
  ];
  await page.getByLabel('Tasks (JSON)').fill(JSON.stringify({ name: 'diamond', tasks }));
  await task(page, /^last ?waiting/).waitFor();
  await page.getByRole('button', { name: 'Submit job' }).click();
  await task(page, /^right ?succeeded/).waitFor();
  await task(page, /^left ?running/).waitFor();
  await task(page, /^last ?waiting/).waitFor();
  const across = async (name) => (await task(page, name).boundingBox()).x;
  assert.ok((await across(/^first/)) < (await across(/^left/)) && (await across(/^left/)) < (await across(/^last/)));
  await task(page, /^last ?succeeded/).waitFor();
  await page.getByRole('heading', { name: /Completed diamond/ }).waitFor();
  await task(page, /^right/).click();
  await page.getByText('three', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Open execution' }).click();
  await page.getByRole('heading', { name: /Succeeded/ }).waitFor();
});

journey('a failed job is resumed, extended and cancelled', () => w.signedIn(), async ({ page }) => {
  const flag = `${w.server.data}/fixed`;
  const tasks = [
    { taskId: 'check', command: `test -e ${flag} || { echo "it is missing" >&2; exit 7; }`, retries: 0 },
    { taskId: 'after', command: 'sleep 600', dependsOn: ['check'] },
  ];
  const { jobId } = await w.server.api('/jobs', { name: 'repairable', tasks });
  await page.goto(w.at(`#/jobs/${jobId}`));
  await page.getByRole('heading', { name: /Failed repairable/ }).waitFor();
  await page.getByRole('status').getByRole('link', { name: 'check' }).click();
  await page.getByText('it is missing', { exact: true }).waitFor();
  await w.server.ended(await w.server.run(`touch ${flag}`));
  await page.getByRole('button', { name: 'Resume' }).click();
  await task(page, /^after ?running/).waitFor();
  await page.getByRole('button', { name: 'Add tasks…' }).click();
  await page.getByLabel('Tasks (JSON)').fill('[{ "taskId": "extra", "command": "echo more", "dependsOn": ["check"] }]');
  await page.getByRole('button', { name: 'Add tasks', exact: true }).click();
  await task(page, /^extra ?succeeded/).waitFor();
  await page.getByRole('button', { name: 'Add tasks…' }).click();
  await page.getByLabel('Tasks (JSON)').fill('[{ "taskId": "bad", "command": "true", "dependsOn": ["nowhere"] }]');
  await page.getByRole('button', { name: 'Add tasks', exact: true }).click();
  await page.getByRole('dialog').getByRole('alert').getByText(/nowhere/).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Cancel job', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click();
  await page.getByRole('heading', { name: /Cancelled repairable/ }).waitFor();
});

journey('a job of thousands of tasks is drawn in part', () => w.signedIn(), async ({ page }) => {
  const tasks = Array.from({ length: 3000 }, (_, i) => ({ taskId: `t${i}`, command: 'true', ...(i >= 10 && { dependsOn: [`t${i % 10}`] }) }));
  const { jobId } = await w.server.api('/jobs', { name: 'wide', tasks });
  await page.goto(w.at(`#/jobs/${jobId}`));
  await page.getByText(/of 3,000 tasks: those nearest/).waitFor();
  assert.ok((await page.locator('svg a').count()) <= 250);
  await page.getByLabel('Search tasks').fill('t2999');
  await page.getByRole('link', { name: 't2999' }).click();
  await task(page, /^t2999/).waitFor();
});

journey('the jobs page lists jobs with their progress', () => w.signedIn(), async ({ page }) => {
  await page.goto(w.at('#/jobs'));
  await page.getByRole('link', { name: 'diamond' }).waitFor();
  await page.getByText('4 completed', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Cancelled' }).click();
  await page.getByRole('link', { name: 'repairable' }).waitFor();
  await rows(page, 1);
});
