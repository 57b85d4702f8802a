// Installs the packages and Chromium, builds the page, then runs every journey, or the named ones:
// `npm test -- hostile jobs`.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { install } from './lib/install.js';

const here = new URL('.', import.meta.url).pathname;
const web = new URL('../web/', import.meta.url).pathname;

function sh(program, args, cwd = here) {
  const { status, error } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${program} ${args.join(' ')}: ${error ?? `exit code ${status}`}`);
    process.exit(status ?? 1);
  }
}

install();
sh('npm', ['run', '--silent', 'build'], web);
if (!process.env.RUNVOY_CHROMIUM && !['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].some(existsSync)) {
  sh('apt-get', ['install', '-y', '-qq', 'chromium']);
}
const wanted = process.argv.slice(2);
const journeys = readdirSync(`${here}journeys`)
  .filter((file) => file.endsWith('.test.js') && (!wanted.length || wanted.some((name) => file.startsWith(name))))
  .map((file) => `journeys/${file}`);
sh(process.execPath, ['--test', '--test-concurrency=2', '--test-reporter=spec', ...journeys]);
