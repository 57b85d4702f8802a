// API errors in one shape: the server's error body, or no answer at all.
import { capitalize } from '../format';

export interface LockHolder {
  lock_name: string;
  held_by: string;
  since: string;
  execution_id: string;
}

export class ApiError extends Error {
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** The error code of the API, or UNREACHABLE. */
  readonly code: string;
  /** Why, or what to do next; may be empty. */
  readonly details: string;
  /** With LOCK_HELD: the holder of the lock. */
  readonly lock: LockHolder | undefined;
  /** With CONFLICT: the same request with `confirm` is accepted. */
  readonly confirm: boolean;
  readonly requestId: string | undefined;

  constructor(status: number, code: string, message: string, details = '', more: { lock?: LockHolder; confirm?: boolean; requestId?: string } = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.details = details;
    this.lock = more.lock;
    this.confirm = more.confirm ?? false;
    this.requestId = more.requestId;
  }

  /** The credential is missing, wrong, revoked or expired. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** No answer, or a temporary failure: the same call may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** The error in a response that is not 2xx. */
export async function refusal(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const body: unknown = await response.json().catch(() => undefined);
  if (typeof body !== 'object' || body === null || !('error' in body)) {
    const message = `the server answered with status ${response.status}`;
    return new ApiError(response.status, 'INTERNAL_ERROR', message, 'check that this is the address of a runvoy server', requestId ? { requestId } : {});
  }
  const { error, code, details, confirm } = body as Record<string, unknown>;
  const lock = 'lock_name' in body ? (body as unknown as LockHolder) : undefined;
  return new ApiError(response.status, String(code ?? ''), String(error), String(details ?? ''), {
    ...(lock && { lock }),
    ...(confirm === true && { confirm }),
    ...(requestId && { requestId }),
  });
}

/** The title and the details of a thrown value. */
export function errorText(error: unknown): { title: string; details: string } {
  if (error instanceof ApiError) {
    return { title: error.message, details: error.details };
  }
  return { title: error instanceof Error ? error.message : String(error), details: '' };
}

/** The notice beside data that could not be refreshed. */
export function staleNotice(error: unknown): string {
  const why = error instanceof ApiError && error.status === 0 ? 'server unreachable' : errorText(error).title;
  return `${capitalize(why)}. Showing the last known state.`;
}
