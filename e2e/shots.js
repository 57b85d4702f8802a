// Pictures of every page, in both themes and on a phone, for people to look at: `npm run shots [DIRECTORY]`.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { populate } from './lib/populate.js';
import { World } from './lib/world.js';

const out = process.argv[2] ?? new URL('./shots', import.meta.url).pathname;
const only = process.env.ONLY?.split(',');
mkdirSync(out, { recursive: true });
const world = await new World().start();
try {
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
    images: '#/images',
    secrets: '#/secrets',
    users: '#/users',
    audit: '#/audit',
    settings: '#/settings',
    nothing: '#/executions?lock=nobody-has-this',
    missing: world.log('0123456789abcdef0123456789abcdef'),
  };
  const looks = [
    { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
    { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
    { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
  ];
  for (const { name, ...options } of looks) {
    const { page, context } = await world.signedIn(undefined, options);
    for (const [title, path] of Object.entries(pages)) {
      if (only && !only.includes(title)) continue;
      await page.goto(path.startsWith('http') ? path : world.at(path));
      await page.waitForTimeout(700);
      await page.screenshot({ path: join(out, `${title}-${name}.png`) });
    }
    await context.close();
    const fresh = await world.stranger(options);
    await fresh.page.goto(world.at(''));
    await fresh.page.waitForTimeout(500);
    await fresh.page.screenshot({ path: join(out, `setup-${name}.png`) });
    await fresh.page.goto(made.link.replace(/^.*?\?/, `${world.at(world.built ? 'logs' : '')}?`));
    await fresh.page.waitForTimeout(500);
    await fresh.page.screenshot({ path: join(out, `linked-${name}.png`) });
    await fresh.context.close();
  }
} finally {
  await world.stop();
}
