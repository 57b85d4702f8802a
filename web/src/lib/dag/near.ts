// The part of a large job that is near one task: what it needs and what needs it, some steps away.
import type { DagTask } from './layout';

/** The tasks within so many steps of one, in their own order; never more than `most`. */
export function near<T extends DagTask>(tasks: readonly T[], id: string, steps: number, most: number): T[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const children = new Map<string, string[]>();
  for (const task of tasks) {
    for (const parent of task.dependsOn) {
      const known = children.get(parent);
      if (known) known.push(task.id);
      else children.set(parent, [task.id]);
    }
  }
  const found = new Set<string>();
  const walk = (next: (id: string) => readonly string[]) => {
    let edge = [id];
    found.add(id);
    for (let step = 0; step < steps; step += 1) {
      edge = edge.flatMap((one) => next(one)).filter((one) => byId.has(one));
      for (const one of edge) if (found.size < most) found.add(one);
      edge = [...new Set(edge)].filter((one) => found.has(one));
    }
  };
  if (byId.has(id)) {
    walk((one) => byId.get(one)?.dependsOn ?? []);
    walk((one) => children.get(one) ?? []);
  }
  return tasks.filter((task) => found.has(task.id));
}
