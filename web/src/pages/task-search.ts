// Finding tasks of a job in the list.
import type { Task } from '../lib/api/shapes';

/** The tasks whose id or name holds the text, in any case; of one status where one is given. */
export function findTasks<T extends Pick<Task, 'taskId' | 'status'> & { name?: string }>(tasks: readonly T[], text: string, status: string): T[] {
  const wanted = text.toLowerCase();
  return tasks.filter((task) => (!status || task.status === status) && `${task.taskId}\n${task.name ?? ''}`.toLowerCase().includes(wanted));
}
