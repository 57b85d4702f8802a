// Who uses the page, and against which server. Endpoint and key live in this browser's local storage and nowhere else; a key
// belongs to one endpoint and is dropped with it.
import { Api } from './api/client';
import { ApiError } from './api/error';
import { can, type Action } from './api/can';
import type { Whoami } from './api/shapes';
import { keep, kept } from './kept';
import { base, isServed } from './route';

export interface Settings {
  endpoint: string;
  key: string;
}

type Phase = 'starting' | 'setup' | 'unreachable' | 'ready';

const STORED_AS = 'runvoy.settings';

class Session {
  phase: Phase = $state('starting');
  me: Whoami | undefined = $state.raw();
  /** The server that is asked. */
  endpoint: string = $state('');
  /** Why the set-up is shown again, or why there is no answer. */
  problem: ApiError | undefined = $state.raw();
  private key: string = $state('');
  /** Calls with the stored key. */
  readonly api: Api = $derived(new Api(this.endpoint, this.key ? { key: this.key } : undefined));

  /** Begins with what is stored. */
  async start(): Promise<void> {
    const stored = load();
    this.endpoint = isServed() ? ownAddress() : (stored?.endpoint ?? '');
    this.key = stored && stored.endpoint === this.endpoint ? stored.key : '';
    if (!this.endpoint) {
      this.endpoint = (await named()) ?? ((await answers(ownAddress())) ? ownAddress() : '');
    }
    addEventListener('storage', (event) => {
      if (event.key === STORED_AS) {
        location.reload();
      }
    });
    await this.recognise();
  }

  /** Asks the server who we are. */
  async recognise(): Promise<void> {
    if (!this.key) {
      this.phase = 'setup';
      return;
    }
    try {
      this.me = await this.api.get('/api/v1/whoami');
      this.problem = undefined;
      this.phase = 'ready';
    } catch (error) {
      this.fail(error);
    }
  }

  /** Takes a key, if the server knows it. Throws where it does not. */
  async signIn(settings: Settings): Promise<void> {
    const endpoint = settings.endpoint.replace(/\/+$/, '');
    const me = await new Api(endpoint, { key: settings.key }).get('/api/v1/whoami');
    keep(STORED_AS, JSON.stringify({ endpoint, key: settings.key }));
    this.endpoint = endpoint;
    this.key = settings.key;
    this.me = me;
    this.problem = undefined;
    this.phase = 'ready';
  }

  /** Spends a claim token and takes the key that it becomes. */
  async claim(endpoint: string, token: string): Promise<void> {
    const claimed = await new Api(endpoint, undefined).post('/api/v1/claim/{token}', { path: { token } });
    await this.signIn({ endpoint, key: claimed.api_key });
  }

  /** Forgets the key. */
  signOut(problem?: ApiError): void {
    keep(STORED_AS, null);
    this.key = '';
    this.me = undefined;
    this.problem = problem;
    this.phase = 'setup';
  }

  /** Looks at what a call threw: without a good key there is nothing to show but the set-up. */
  noticed(error: unknown): void {
    if (error instanceof ApiError && error.isNoCredential && this.phase === 'ready') {
      this.problem = error;
      this.me = undefined;
      this.phase = 'setup';
    }
  }

  /** Whether the role allows this. */
  can(action: Action, owners?: readonly string[]): boolean {
    return can(this.me, action, owners);
  }

  private fail(error: unknown): void {
    this.problem = error instanceof ApiError ? error : new ApiError(0, 'UNREACHABLE', String(error));
    this.phase = this.problem.isNoCredential ? 'setup' : 'unreachable';
  }
}

/** Where the server would be if it served this very page. */
export function ownAddress(): string {
  return new URL(base(location), location.href).href.replace(/[^/]*$/, '').replace(/\/+$/, '');
}

/** The server that whoever put this page here named in the file beside it. */
async function named(): Promise<string | undefined> {
  try {
    const response = await fetch(`${ownAddress()}/runvoy.json`, { cache: 'no-cache', credentials: 'omit' });
    const { endpoint } = (await response.json()) as Partial<Settings>;
    return endpoint ? endpoint.replace(/\/+$/, '') : undefined;
  } catch {
    return undefined;
  }
}

async function answers(endpoint: string): Promise<boolean> {
  try {
    return (await new Api(endpoint, undefined).get('/api/v1/health')).status === 'ok';
  } catch {
    return false;
  }
}

function load(): Settings | undefined {
  try {
    const stored: unknown = JSON.parse(kept(STORED_AS) ?? 'null');
    const { endpoint, key } = (stored ?? {}) as Partial<Settings>;
    return typeof endpoint === 'string' && typeof key === 'string' ? { endpoint, key } : undefined;
  } catch {
    return undefined;
  }
}

export const session = new Session();
