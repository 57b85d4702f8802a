// The layout of a job: layers, no overlaps, few crossings, bounded cost.
import { describe, expect, test } from 'vitest';
import { layout, ranks, type DagTask } from '../src/lib/dag/layout';
import { near } from '../src/lib/dag/near';

const SIZE = { width: 100, height: 30, across: 40, along: 10 };
const task = (id: string, ...dependsOn: string[]): DagTask => ({ id, dependsOn });
const DIAMOND = [task('a'), task('b', 'a'), task('c', 'a'), task('d', 'b', 'c')];

/** A graph from a seed: every task depends on up to three earlier ones. */
function random(seed: number, count: number): DagTask[] {
  let state = seed;
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  return Array.from({ length: count }, (_, i) => task(`t${i}`, ...Array.from({ length: i ? next(4) : 0 }, () => `t${next(i)}`)));
}

describe('layers', () => {
  test('a task is one layer after its last dependency', () => {
    expect(Object.fromEntries(ranks([...DIAMOND, task('e', 'a', 'd')]))).toEqual({ a: 0, b: 1, c: 1, d: 2, e: 3 });
  });

  test('unknown tasks, self-dependencies and cycles are tolerated', () => {
    expect(ranks([task('a', 'nowhere', 'a')]).get('a')).toBe(0);
    expect([...ranks([task('a', 'b'), task('b', 'a'), task('c')]).values()]).toEqual([0, 0, 0]);
  });
});

describe('the picture', () => {
  test('dependencies lead from left to right', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const tasks = random(seed, 60);
      const at = new Map(layout(tasks, SIZE).nodes.map((node) => [node.id, node]));
      for (const { id, dependsOn } of tasks) {
        for (const parent of dependsOn) expect(at.get(parent)!.x).toBeLessThan(at.get(id)!.x);
      }
    }
  });

  test('tasks do not overlap and lie inside', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const drawing = layout(random(seed, 60), SIZE);
      for (const a of drawing.nodes) {
        expect(a.y).toBeGreaterThanOrEqual(-0.001);
        expect(a.y + SIZE.height).toBeLessThanOrEqual(drawing.height + 0.001);
        expect(a.x + SIZE.width).toBeLessThanOrEqual(drawing.width);
        const overlapping = drawing.nodes.filter((b) => b !== a && b.x === a.x && Math.abs(b.y - a.y) < SIZE.height);
        expect(overlapping).toEqual([]);
      }
    }
  });

  test('two chains side by side do not cross', () => {
    const tasks = [task('a1'), task('b1'), task('b2', 'b1'), task('a2', 'a1'), task('a3', 'a2'), task('b3', 'b2')];
    const at = new Map(layout(tasks, SIZE).nodes.map((node) => [node.id, node.y]));
    const side = (n: number) => Math.sign(at.get(`a${n}`)! - at.get(`b${n}`)!);
    expect([side(2), side(3)]).toEqual([side(1), side(1)]);
  });

  test('a diamond is symmetric with one line per dependency', () => {
    const { nodes, edges } = layout(DIAMOND, SIZE);
    const y = Object.fromEntries(nodes.map((node) => [node.id, node.y]));
    expect(y['a']).toBeCloseTo(y['d']!);
    expect((y['b']! + y['c']!) / 2).toBeCloseTo(y['a']!);
    expect(edges.map(({ from, to }) => `${from}${to}`).sort()).toEqual(['ab', 'ac', 'bd', 'cd']);
    for (const { path } of edges) expect(path).toMatch(/^M[\d. -]+( C[\d. -]+| H[\d.-]+)+$/);
  });

  test('empty and single-task jobs have a layout', () => {
    expect(layout([], SIZE)).toEqual({ nodes: [], edges: [], width: 0, height: 0 });
    expect(layout([task('a')], SIZE)).toMatchObject({ width: 100, height: 30 });
  });
});

describe('near a task', () => {
  test('dependencies and dependants within some steps', () => {
    const chain = Array.from({ length: 9 }, (_, i) => task(`t${i}`, ...(i ? [`t${i - 1}`] : [])));
    expect(near(chain, 't4', 2, 100).map(({ id }) => id)).toEqual(['t2', 't3', 't4', 't5', 't6']);
    expect(near(chain, 'nowhere', 2, 100)).toEqual([]);
  });

  test('is bounded around a task with thousands of dependants', () => {
    const star = [task('hub'), ...Array.from({ length: 5_000 }, (_, i) => task(`t${i}`, 'hub'))];
    const found = near(star, 'hub', 3, 250);
    expect(found).toHaveLength(250);
    expect(found.some(({ id }) => id === 'hub')).toBe(true);
  });
});
