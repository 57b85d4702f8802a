// Test helpers: one world per file, and tests that end by checking that nothing forbidden happened.
import { after, before, test } from 'node:test';
import { World } from './world.js';

/** The world of a file; started and prepared before its first test, ended after its last. */
export function world(prepare = async () => undefined) {
  const made = new World();
  before(async () => {
    await made.start();
    await prepare(made);
  }, { timeout: 120_000 });
  after(() => made.stop(), { timeout: 60_000 });
  return made;
}

/** A test with a visitor of its own, who is checked and leaves at its end. */
export function journey(name, visit, walk, options = {}) {
  test(name, { timeout: 180_000, ...options }, async (context) => {
    const visitor = await visit();
    try {
      await walk(visitor, context);
      visitor.check();
    } catch (error) {
      if (process.env.RUNVOY_E2E_SHOT) await visitor.page.screenshot({ path: process.env.RUNVOY_E2E_SHOT }).catch(() => undefined);
      throw error;
    } finally {
      await visitor.context.close();
    }
  });
}
