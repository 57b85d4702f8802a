// Installs the packages of `web`, `e2e` or `rpc` where their lock file changed:
// `node e2e/lib/install.js [NAME]`; without a name, those of `web` and `e2e`.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DIRECTORIES = { e2e: '../', web: '../../web/', rpc: '../rpc/' };
const PAGE = ['e2e', 'web'];

// npm started from a script of npm must not take that one's settings for its own.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));

export function install(names = PAGE) {
  for (const name of names) {
    const directory = fileURLToPath(new URL(DIRECTORIES[name], import.meta.url));
    const [lock, stamp] = [readFileSync(`${directory}package-lock.json`, 'utf8'), `${directory}node_modules/.installed-lock`];
    if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) continue;
    const args = ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const { status, error } = spawnSync('npm', args, { cwd: directory, stdio: 'inherit', env });
    if (status !== 0) throw new Error(`npm ${args.join(' ')} in ${directory}: ${error ?? `exit code ${status}`}`);
    writeFileSync(stamp, lock);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) install(process.argv[2] ? [process.argv[2]] : PAGE);
