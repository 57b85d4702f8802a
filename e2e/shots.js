// Screenshots of every page, dialog and empty state, in both themes and on a phone, for review:
// `npm run shots [DIRECTORY]`. `ONLY=job,kill` takes only those.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { populate } from './lib/populate.js';
import { World } from './lib/world.js';

const out = process.argv[2] ?? new URL('./shots', import.meta.url).pathname;
const only = process.env.ONLY?.split(',');
mkdirSync(out, { recursive: true });
const EMPTY = { executions: '#/executions', jobs: '#/jobs', locks: '#/locks', queues: '#/queues', dead: '#/queues/default', health: '#/health', cost: '#/cost', secrets: '#/secrets' };
const LOOKS = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
];

async function shoot(page, title, look) {
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(out, `${title}-${look}.png`) });
}

const isWanted = ([title]) => !only || only.includes(title);
const world = await new World().start();
try {
  const empty = Object.entries(EMPTY).map(([title, path]) => [`empty-${title}`, path]).filter(isWanted);
  for (const { name, ...options } of empty.length ? LOOKS : []) {
    const { page, context } = await world.signedIn(undefined, options);
    for (const [title, path] of empty) {
      await page.goto(world.at(path));
      await shoot(page, title, name);
    }
    await context.close();
  }
  const made = await populate(world.server);
  const pages = {
    executions: '#/executions',
    search: '#/executions?text=terraform',
    failed: world.log(made.failed),
    running: world.log(made.running),
    colours: world.log(made.colours),
    waiting: world.log(made.waiting),
    jobs: '#/jobs',
    job: `#/jobs/${made.job}`,
    task: `#/jobs/${made.job}?task=test-unit`,
    newjob: '#/jobs/new',
    run: '#/run',
    locks: '#/locks',
    queues: '#/queues',
    workers: '#/workers',
    dead: '#/queues/default',
    health: '#/health',
    cost: '#/cost',
    images: '#/images',
    secrets: '#/secrets',
    users: '#/users',
    audit: '#/audit',
    settings: '#/settings',
    nothing: '#/executions?lock=none',
    missing: world.log('0123456789abcdef0123456789abcdef'),
  };
  const address = (path) => (path.startsWith('http') ? path : world.at(path));
  // A page, then the buttons to press on it.
  const dialogs = {
    kill: [world.log(made.running), 'Kill'],
    share: [world.log(made.failed), 'Share…'],
    events: [world.log(made.failed), 'Events'],
    view: [world.log(made.failed), 'View'],
    download: [world.log(made.failed), 'Download'],
    shortcuts: [world.log(made.failed), 'View', 'Keyboard shortcuts'],
    chosen: [world.log(made.failed, '#L3-L9')],
    addtasks: [`#/jobs/${made.job}`, 'Add tasks…'],
    canceljob: [`#/jobs/${made.job}`, 'Cancel job'],
    release: ['#/locks', 'Release'],
    queue: ['#/queues', 'Edit'],
    workerkey: ['#/workers', 'Create key'],
    image: ['#/images', 'Register image'],
    secret: ['#/secrets', 'Add secret'],
    value: ['#/secrets', 'Show'],
    invite: ['#/users', 'Invite user'],
    keys: ['#/users', '1 key'],
    revoke: ['#/users', 'Revoke'],
    verify: ['#/audit', 'Verify'],
    rotate: ['#/settings', 'Rotate'],
    signout: ['#/settings', 'Sign out'],
  };
  for (const { name, ...options } of LOOKS) {
    const { page, context } = await world.signedIn(undefined, options);
    for (const [title, path] of Object.entries(pages)) {
      if (!isWanted([title])) continue;
      await page.goto(address(path));
      await shoot(page, title, name);
    }
    for (const [title, [path, ...buttons]] of Object.entries(dialogs).filter(isWanted)) {
      await page.goto('about:blank');
      await page.goto(address(path));
      if (title === 'workerkey') await page.getByLabel('Account name').fill(`build-${name}`);
      for (const button of buttons) await page.getByRole('button', { name: button }).first().click();
      await shoot(page, title, name);
    }
    await context.close();
    const fresh = await world.stranger(options);
    await fresh.page.goto(world.at(''));
    await shoot(fresh.page, 'setup', name);
    await fresh.page.goto(made.link.replace(/^.*?\?/, `${world.at(world.built ? 'logs' : '')}?`));
    await shoot(fresh.page, 'linked', name);
    await fresh.context.close();
    const refused = await world.signedIn('rv_unknown', options);
    await refused.page.goto(world.at(''));
    await shoot(refused.page, 'refused', name);
    await refused.context.close();
  }
  const away = await world.signedIn();
  await away.page.goto(world.at('#/executions'));
  await away.page.getByRole('table').waitFor();
  await world.server.kill();
  await away.page.getByText('Showing the last known state').waitFor();
  await shoot(away.page, 'unreachable', 'light');
} finally {
  await world.stop();
}
