// The run form as data: empty, from an earlier execution, and as the request that it becomes.
import type { Execution, RunRequest } from '../lib/api/shapes';
import type { Pair } from '../lib/ui/pair';

export interface RunForm {
  command: string;
  image: string;
  lock: string;
  waitForLock: boolean;
  timeout: number | null;
  env: Pair[];
  secrets: string[];
  gitRepo: string;
  gitRef: string;
  gitPath: string;
  gitToken: string;
  queue: string;
  priority: string;
  retries: number | null;
  labels: Pair[];
}

/** How long to wait for a lock: at most a day. */
const LOCK_WAIT_SECONDS = 86_400;

export function blank(): RunForm {
  return {
    command: '',
    image: '',
    lock: '',
    waitForLock: false,
    timeout: null,
    env: [],
    secrets: [],
    gitRepo: '',
    gitRef: '',
    gitPath: '',
    gitToken: '',
    queue: '',
    priority: '',
    retries: null,
    labels: [],
  };
}

/** The form, filled from an earlier execution. */
export function fromExecution(execution: Execution): RunForm {
  return {
    ...blank(),
    command: execution.args ? [execution.command ?? '', ...execution.args].map(quoted).join(' ') : (execution.command ?? ''),
    image: execution.image_id ?? '',
    lock: execution.lock_name ?? '',
    queue: execution.queue === 'default' ? '' : (execution.queue ?? ''),
    labels: Object.entries(execution.labels ?? {}).map(([name, value]) => ({ name, value })),
  };
}

/** The request; empty fields are left out. */
export function toRequest(form: RunForm): RunRequest {
  const text = (name: string, value: string) => (value.trim() ? { [name]: value.trim() } : {});
  const map = (pairs: readonly Pair[]) => Object.fromEntries(pairs.filter((pair) => pair.name.trim()).map((pair) => [pair.name.trim(), pair.value]));
  const [env, labels] = [map(form.env), map(form.labels)];
  return {
    command: form.command,
    ...text('image', form.image),
    ...text('lock', form.lock),
    ...(form.lock.trim() && form.waitForLock && { lock_wait: LOCK_WAIT_SECONDS }),
    ...(form.timeout && { timeout: form.timeout }),
    ...(Object.keys(env).length && { env }),
    ...(form.secrets.length && { secrets: form.secrets }),
    ...text('git_repo', form.gitRepo),
    ...text('git_ref', form.gitRef),
    ...text('git_path', form.gitPath),
    ...text('git_token', form.gitToken),
    ...text('queue', form.queue),
    ...(form.priority && { priority: Number(form.priority) }),
    ...(form.retries && { retries: form.retries }),
    ...(Object.keys(labels).length && { labels }),
  };
}

/** A shell word, quoted where needed. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
