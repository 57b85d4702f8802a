// Makes the types from `proto/`, then walks every journey once for each way of speaking. The server is somebody else's: `RUNVOY_URL`,
// `RUNVOY_KEY` (an admin's) and `RUNVOY_WORKER_KEY` say where it is and who asks.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: here, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${program} ${args.join(' ')}: ${error ?? `exit code ${status}`}`);
    process.exit(status ?? 1);
  }
}

for (const name of ['RUNVOY_URL', 'RUNVOY_KEY', 'RUNVOY_WORKER_KEY']) {
  if (!process.env[name]) throw new Error(`${name} is not set: cargo xtask test --test clients sets it`);
}
run('node_modules/.bin/buf', ['generate']);
const journeys = readdirSync(`${here}journeys`).filter((file) => file.endsWith('.test.js'));
run(process.execPath, ['--test', '--test-reporter=spec', '--test-force-exit', ...journeys.map((file) => `journeys/${file}`)]);
