// Installs what the lock files of the page and of the journeys name, unless it is there: `node e2e/lib/install.js`.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DIRECTORIES = ['../', '../../web/'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

// npm started from a script of npm must not take that one's settings for its own.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));

export function install() {
  for (const directory of DIRECTORIES) {
    const [lock, stamp] = [readFileSync(`${directory}package-lock.json`, 'utf8'), `${directory}node_modules/.installed-lock`];
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) continue;
    const args = ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const { status, error } = spawnSync('npm', args, { cwd: directory, stdio: 'inherit', env });
    if (status !== 0) throw new Error(`npm ${args.join(' ')} in ${directory}: ${error ?? `exit code ${status}`}`);
    writeFileSync(stamp, lock);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) install();
