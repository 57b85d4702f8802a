// The session: the server, the API key and the signed-in user. Endpoint and key are in this
// browser's local storage and nowhere else; a key belongs to one endpoint.
import { Api } from './api/client';
import { ApiError } from './api/error';
import { can, type Action } from './api/can';
import type { Whoami } from './api/shapes';
import { readItem, writeItem } from './storage';
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
  /** The address of the server. */
  endpoint: string = $state('');
  /** Why the sign-in page is shown again, or why the server is unreachable. */
  problem: ApiError | undefined = $state.raw();
  private key: string = $state('');
  /** The API client with the stored key. */
  readonly api: Api = $derived(new Api(this.endpoint, this.key ? { key: this.key } : undefined));

  /** Restores the stored session. */
  async start(): Promise<void> {
    const stored = load();
    this.endpoint = isServed() ? ownAddress() : (stored?.endpoint ?? '');
    this.key = stored && stored.endpoint === this.endpoint ? stored.key : '';
    if (!this.endpoint) {
      this.endpoint = (await configuredEndpoint()) ?? ((await isServer(ownAddress())) ? ownAddress() : '');
    }
    addEventListener('storage', (event) => {
      if (event.key === STORED_AS) {
        location.reload();
      }
    });
    await this.identify();
  }

  /** Asks the server which user the key belongs to. */
  async identify(): Promise<void> {
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

  /** Signs in with a key and stores it. Throws where the server refuses the key. */
  async signIn(settings: Settings): Promise<void> {
    const endpoint = settings.endpoint.replace(/\/+$/, '');
    const me = await new Api(endpoint, { key: settings.key }).get('/api/v1/whoami');
    writeItem(STORED_AS, JSON.stringify({ endpoint, key: settings.key }));
    this.endpoint = endpoint;
    this.key = settings.key;
    this.me = me;
    this.problem = undefined;
    this.phase = 'ready';
  }

  /** Exchanges an invitation token for a key and signs in with it. */
  async claim(endpoint: string, token: string): Promise<void> {
    const claimed = await new Api(endpoint, undefined).post('/api/v1/claim/{token}', { path: { token } });
    await this.signIn({ endpoint, key: claimed.api_key });
  }

  /** Forgets the key. */
  signOut(problem?: ApiError): void {
    writeItem(STORED_AS, null);
    this.key = '';
    this.me = undefined;
    this.problem = problem;
    this.phase = 'setup';
  }

  /** Shows the sign-in page after an error that says that the key is not valid. */
  handleError(error: unknown): void {
    if (error instanceof ApiError && error.isUnauthorized && this.phase === 'ready') {
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
    this.phase = this.problem.isUnauthorized ? 'setup' : 'unreachable';
  }
}

/** The server's address if it serves this page itself. */
export function ownAddress(): string {
  return new URL(base(location), location.href).href.replace(/[^/]*$/, '').replace(/\/+$/, '');
}

/** The server named in `runvoy.json` beside this page, on a static host. */
async function configuredEndpoint(): Promise<string | undefined> {
  try {
    const response = await fetch(`${ownAddress()}/runvoy.json`, { cache: 'no-cache', credentials: 'omit' });
    const { endpoint } = (await response.json()) as Partial<Settings>;
    return endpoint ? endpoint.replace(/\/+$/, '') : undefined;
  } catch {
    return undefined;
  }
}

async function isServer(endpoint: string): Promise<boolean> {
  try {
    return (await new Api(endpoint, undefined).get('/api/v1/health')).status === 'ok';
  } catch {
    return false;
  }
}

function load(): Settings | undefined {
  try {
    const stored: unknown = JSON.parse(readItem(STORED_AS) ?? 'null');
    const { endpoint, key } = (stored ?? {}) as Partial<Settings>;
    return typeof endpoint === 'string' && typeof key === 'string' ? { endpoint, key } : undefined;
  } catch {
    return undefined;
  }
}

export const session = new Session();
