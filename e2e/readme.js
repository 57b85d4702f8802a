// Makes the two pictures of README.md from the real program: `npm --prefix e2e run readme`.
// docs/img/page.png is a screenshot of the page, docs/img/session.svg a recorded terminal session.
// Ids, times and the host's name are replaced by fixed ones, so that a run changes the files only
// where the program looks different.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { optimised } from './lib/png.js';
import { binary } from './lib/server.js';
import { terminalSvg } from './lib/svg.js';
import { screen } from './lib/terminal.js';
import { World } from './lib/world.js';

const out = new URL('../docs/img/', import.meta.url).pathname;
const NOW = Date.parse('2026-01-15T09:30:00Z');
const DURATION = '12ms';
const COLUMNS = 96;
const MOST_BYTES = 150_000;

/** The session: each command with the exit code that it must have, and what is typed into it. */
const SESSION = [
  { command: "runvoy run 'echo hello; exit 3'", exit: 3 },
  { command: "id=$(runvoy run --detach --lock prod 'sleep 60')", exit: 0 },
  { command: "runvoy run --lock prod 'echo mine'", exit: 125 },
  { command: 'runvoy kill --yes "$id"', exit: 0 },
  { command: 'runvoy list', exit: 0 },
];

const BUILD = ['\x1b[1mresolving\x1b[0m 214 packages', '::group::Fetch', 'fetched 12 of 214', 'fetched 214 of 214', '::endgroup::'];
const CRATES = ['bytes', 'log', 'serde', 'http', 'tokio', 'tracing', 'hyper', 'axum'];
const PRINT = [...BUILD, ...CRATES.map((name) => `\x1b[1;32m   Compiling\x1b[0m ${name}`), '\x1b[1;33mwarning\x1b[0m: unused variable `retries`'];

/** The job on the screenshot, with the second in which each task began and how long it took. */
const JOB = {
  name: 'nightly release',
  concurrency: 3,
  tasks: [
    { taskId: 'checkout', command: 'true', times: [0, 4] },
    { taskId: 'deps', command: 'true', dependsOn: ['checkout'], times: [4, 38] },
    { taskId: 'lint', command: 'true', dependsOn: ['deps'], times: [42, 21] },
    { taskId: 'test-unit', command: 'true', dependsOn: ['deps'], times: [42, 67] },
    { taskId: 'test-web', command: 'true', dependsOn: ['deps'], times: [42, 52] },
    { taskId: 'build', command: `printf %s '${Buffer.from(`${PRINT.join('\n')}\n`).toString('base64')}' | base64 -d; sleep 600`, dependsOn: ['deps'], times: [63] },
    { taskId: 'package', command: 'true', dependsOn: ['lint', 'test-unit', 'test-web', 'build'] },
    { taskId: 'sign', command: 'true', dependsOn: ['package'] },
    { taskId: 'publish', command: 'true', dependsOn: ['sign'], lock: 'release' },
  ],
};

/** Host, ids, times and durations in a text, replaced by fixed ones of the same kind; short ids too, if the whole id was seen before. */
function fixer() {
  const ids = new Map();
  const fixed = (id) => ids.get(id) ?? ids.set(id, `019bc0f14a3b7c5d8e2f${(0x4f2a9c1d7e30 + ids.size * 0x1f3b5d79).toString(16)}`).get(id);
  const short = (text) => [...ids].reduce((rest, [id, made]) => rest.replaceAll(new RegExp(`(?<![0-9a-f])${id.slice(-6)}(?![0-9a-f])`, 'g'), made.slice(-6)), text);
  // In a table, the next column stays where it is.
  const duration = (text, spaces) => DURATION + ' '.repeat(spaces && Math.max(1, text.length - DURATION.length));
  return (text) =>
    short(text.replaceAll(/(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/g, fixed))
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, new Date(NOW).toISOString())
      .replaceAll(/\d+\.\d{3} s\b/g, '0.012 s')
      .replaceAll(/\b\d+(?:\.\d+)?m?s\b( *)/g, (all, spaces) => duration(all, spaces.length))
      .replaceAll(` on ${hostname()} `, ' on build-1 ');
}

/** Runs a command at a terminal of its own, and gives what it wrote there. */
function atTerminal(command, env, cwd) {
  const inner = `stty cols ${COLUMNS} rows 40; ${command}`;
  const { stdout, status, error } = spawnSync('script', ['-qefc', inner, '/dev/null'], { env, cwd, input: '', encoding: 'utf8' });
  if (error) throw new Error(`script, of util-linux, is needed to record a terminal: ${error}`);
  return { output: stdout, status };
}

async function record(server) {
  const home = mkdtempSync(join(tmpdir(), 'runvoy-readme-'));
  const path = `${dirname(resolve(binary))}:${process.env.PATH}`;
  const env = { PATH: path, HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8', SHELL: '/bin/sh', RUNVOY_API_ENDPOINT: server.endpoint, RUNVOY_API_KEY: server.key };
  const [fix, lines] = [fixer(), []];
  let at = 0.5;
  try {
    for (const { command, exit } of SESSION) {
      const assigned = /^(\w+)=\$\((.*)\)$/.exec(command);
      const { output, status } = atTerminal(assigned?.[2] ?? command, env, home);
      if (status !== exit) throw new Error(`${command} exited with ${status} instead of ${exit}:\n${output}`);
      const shown = screen(fix(output.replaceAll(server.endpoint, 'http://127.0.0.1:56212')));
      // The last line is on standard output, which the shell keeps for the variable.
      if (assigned) {
        env[assigned[1]] = output.trim().split('\n').at(-1);
        shown.pop();
      }
      // The list at the end shows final statuses.
      if (command.includes(' kill ')) await server.ended(env.id);
      lines.push({ at, spans: [{ text: '$', column: 0, style: { prompt: true } }, { text: command, column: 2, style: { bold: true } }] });
      for (const spans of shown) lines.push({ at: (at += 0.3), spans });
      at += 1.6;
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return terminalSvg({ title: 'A terminal session with runvoy', columns: COLUMNS, lines });
}

/** Answers of the server as they would be at the fixed time. */
async function freeze(context) {
  const fix = fixer();
  const at = (seconds) => new Date(NOW - 131_000 + seconds * 1_000).toISOString();
  const times = new Map(JOB.tasks.map((task) => [task.taskId, task.times ?? []]));
  await context.clock.setFixedTime(NOW);
  await context.route(/\/api\/v1\/jobs\/[0-9a-f]{32}(\?|$)/, async (route) => {
    const response = await route.fetch();
    const job = await response.json();
    for (const task of job.tasks ?? []) {
      const [from, took] = times.get(task.taskId);
      if (task.startedAt) task.startedAt = at(from);
      if (task.completedAt) task.completedAt = at(from + took);
    }
    await route.fulfill({ response, json: { ...job, jobId: fix(job.jobId), createdAt: at(0) } });
  });
  await context.route(/\/logs\?/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: fix(await response.text()), headers: response.headers() });
  });
}

async function photograph(world) {
  const ana = await world.server.user('ana@example.com', 'admin');
  const tasks = JOB.tasks.map(({ times, ...task }) => task);
  const { jobId } = await world.server.api('/jobs', { ...JOB, tasks }, { key: ana.key });
  const { page, context } = await world.signedIn(ana.key, { viewport: { width: 1250, height: 800 }, deviceScaleFactor: 2, colorScheme: 'light', reducedMotion: 'reduce' });
  await freeze(context);
  await page.goto(world.at(`#/jobs/${jobId}?task=build`));
  for (const name of ['lint', 'test-unit', 'test-web']) await page.getByRole('link', { name: new RegExp(`^${name} ?succeeded`) }).waitFor();
  await page.getByText('unused variable').waitFor();
  await page.waitForLoadState('networkidle').catch(() => undefined);
  const shot = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  await context.close();
  return optimised(shot);
}

mkdirSync(out, { recursive: true });
const world = await new World().start();
try {
  writeFileSync(join(out, 'session.svg'), await record(world.server));
  const png = await photograph(world);
  if (png.length > MOST_BYTES) throw new Error(`page.png has ${png.length} bytes, more than ${MOST_BYTES}`);
  writeFileSync(join(out, 'page.png'), png);
} finally {
  await world.stop();
}
