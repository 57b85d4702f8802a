// Where the tasks of a job are drawn: layers from left to right by the longest way from a root, crossings reduced by moving tasks
// towards the middle of their neighbours, then heights that keep lines short. Pure: the same tasks give the same picture.

export interface DagTask {
  id: string;
  dependsOn: readonly string[];
}

export interface Size {
  width: number;
  height: number;
  /** Between two layers. */
  across: number;
  /** Between two tasks of a layer. */
  along: number;
}

export interface Placed {
  id: string;
  x: number;
  y: number;
}

export interface Edge {
  from: string;
  to: string;
  /** An SVG path from the right side of `from` to the left side of `to`. */
  path: string;
}

export interface Drawing {
  nodes: Placed[];
  edges: Edge[];
  width: number;
  height: number;
}

/** A task, or the place where a line crosses a layer. */
interface Cell {
  id: string;
  rank: number;
  y: number;
  up: Cell[];
  down: Cell[];
  thin: boolean;
}

const SWEEPS = 12;
/** A line that only passes takes this part of a task's place. */
const THIN = 0.45;

/** The layer of every task: 0 for the roots. Unknown dependencies and cycles do not stop it. */
export function ranks(tasks: readonly DagTask[]): Map<string, number> {
  const known = new Set(tasks.map((task) => task.id));
  const children = new Map<string, string[]>();
  const open = new Map<string, number>();
  const rank = new Map<string, number>();
  for (const task of tasks) {
    const parents = new Set(task.dependsOn.filter((id) => known.has(id) && id !== task.id));
    open.set(task.id, parents.size);
    for (const parent of parents) {
      children.set(parent, [...(children.get(parent) ?? []), task.id]);
    }
  }
  const ready = tasks.filter((task) => open.get(task.id) === 0).map((task) => task.id);
  for (const id of ready) rank.set(id, 0);
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    for (const child of children.get(id) ?? []) {
      rank.set(child, Math.max(rank.get(child) ?? 0, (rank.get(id) ?? 0) + 1));
      const left = (open.get(child) ?? 1) - 1;
      open.set(child, left);
      if (left === 0) ready.push(child);
    }
  }
  for (const task of tasks) if (!rank.has(task.id)) rank.set(task.id, 0);
  return rank;
}

/** The picture of a job. */
export function layout(tasks: readonly DagTask[], size: Size): Drawing {
  const { layers, cells, lines } = cut(tasks);
  order(layers);
  const pitch = size.height + size.along;
  place(layers, pitch);
  const top = Math.min(...layers.flat().map((cell) => cell.y));
  const x = (rank: number) => rank * (size.width + size.across);
  const nodes = tasks.map(({ id }) => {
    const cell = cells.get(id)!;
    return { id, x: x(cell.rank), y: cell.y - top };
  });
  const edges = lines.map((line) => {
    const points = line.cells.map((cell, index): [number, number] => {
      const y = cell.y - top + size.height / 2;
      if (index === 0) return [x(cell.rank) + size.width, y];
      return [x(cell.rank), y];
    });
    return { from: line.from, to: line.to, path: curve(points, size) };
  });
  return {
    nodes,
    edges,
    width: layers.length ? x(layers.length - 1) + size.width : 0,
    height: nodes.length ? Math.max(...layers.flat().map((cell) => cell.y - top)) + size.height : 0,
  };
}

/** Layers of cells; a line over several layers gets a thin cell in each that it crosses. */
function cut(tasks: readonly DagTask[]) {
  const rank = ranks(tasks);
  const cells = new Map<string, Cell>();
  const layers: Cell[][] = [];
  const add = (id: string, at: number, thin: boolean): Cell => {
    const cell: Cell = { id, rank: at, y: 0, up: [], down: [], thin };
    while (layers.length <= at) layers.push([]);
    layers[at]!.push(cell);
    return cell;
  };
  for (const task of tasks) cells.set(task.id, add(task.id, rank.get(task.id) ?? 0, false));
  const lines: { from: string; to: string; cells: Cell[] }[] = [];
  for (const task of tasks) {
    const child = cells.get(task.id)!;
    for (const id of new Set(task.dependsOn)) {
      const parent = cells.get(id);
      if (!parent || parent.rank >= child.rank) continue;
      const way = [parent];
      for (let at = parent.rank + 1; at < child.rank; at += 1) way.push(add('', at, true));
      way.push(child);
      for (let at = 1; at < way.length; at += 1) {
        way[at - 1]!.down.push(way[at]!);
        way[at]!.up.push(way[at - 1]!);
      }
      lines.push({ from: id, to: task.id, cells: way });
    }
  }
  return { layers, cells, lines };
}

/** Sorts each layer by the middle of its neighbours, down and up again. */
function order(layers: Cell[][]): void {
  for (const layer of layers) layer.forEach((cell, index) => (cell.y = index));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map((cell) => [cell, mean(down ? cell.up : cell.down) ?? cell.y]));
      layer.sort((a, b) => middle.get(a)! - middle.get(b)! || a.y - b.y);
      layer.forEach((cell, index) => (cell.y = index));
    }
  }
}

/** Heights: each cell near its neighbours, none nearer to the next of its layer than there is room for. */
function place(layers: Cell[][], pitch: number): void {
  for (const layer of layers) spread(layer, layer.map((_, index) => index * pitch), pitch);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = layer.map((cell) => mean(down ? cell.up : cell.down) ?? mean(down ? cell.down : cell.up) ?? cell.y);
      spread(layer, wanted, pitch);
    }
  }
}

/** The heights nearest to the wanted ones that keep order and room: the mean of pushing down and pushing up. */
function spread(layer: Cell[], wanted: number[], pitch: number): void {
  const room = (a: Cell, b: Cell) => pitch * (a.thin && b.thin ? THIN : a.thin || b.thin ? (1 + THIN) / 2 : 1);
  const low = [...wanted];
  const high = [...wanted];
  for (let at = 1; at < layer.length; at += 1) low[at] = Math.max(low[at]!, low[at - 1]! + room(layer[at - 1]!, layer[at]!));
  for (let at = layer.length - 2; at >= 0; at -= 1) high[at] = Math.min(high[at]!, high[at + 1]! - room(layer[at]!, layer[at + 1]!));
  layer.forEach((cell, at) => (cell.y = (low[at]! + high[at]!) / 2));
}

function mean(cells: readonly Cell[]): number | undefined {
  return cells.length ? cells.reduce((sum, cell) => sum + cell.y, 0) / cells.length : undefined;
}

/** A smooth line through the points, level at each of them. */
function curve(points: [number, number][], size: Size): string {
  const [first, ...rest] = points;
  if (!first) return '';
  let [x, y] = first;
  let path = `M${round(x)} ${round(y)}`;
  rest.forEach(([toX, toY], index) => {
    const half = (toX - x) / 2;
    path += ` C${round(x + half)} ${round(y)} ${round(toX - half)} ${round(toY)} ${round(toX)} ${round(toY)}`;
    [x, y] = [toX, toY];
    // Through the layer that it only crosses, it goes straight on.
    if (index < rest.length - 1) {
      x += size.width;
      path += ` H${round(x)}`;
    }
  });
  return path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
