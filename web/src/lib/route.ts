// Reading and writing the addresses of this page. The page of a log has the address that the
// command line prints (`logs?execution_id=ID#L120-L140`, a signed link adds `token=…`); all others
// live in the fragment, so that any static host can serve them.

import { formatLineRange, parseLineRange, type LineRange } from './log/permalink';

export interface Route {
  /** The parts of the path: `['jobs', 'ID']`. */
  path: readonly string[];
  query: URLSearchParams;
}

/** The content of the fragment of a log's page. */
export interface LogFragment {
  token: string | undefined;
  lines: LineRange | null;
}

interface Place {
  pathname: string;
  search: string;
  hash: string;
}

/** The route of an address. */
export function read(place: Place): Route {
  const execution = new URLSearchParams(place.search).get('execution_id');
  if (execution !== null && !place.hash.startsWith('#/')) {
    return { path: ['executions', execution], query: new URLSearchParams() };
  }
  const [path = '', query = ''] = place.hash.replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean).map(decode);
  return { path: parts.length && place.hash.startsWith('#/') ? parts : ['executions'], query: new URLSearchParams(query) };
}

/** The base path of the page, without the name of a log's page. */
export function base(place: { pathname: string }): string {
  return place.pathname.replace(/\/logs\/?$/, '/');
}

/** The address of a route, for a link. */
export function href(place: { pathname: string }, path: readonly string[], query: Record<string, string | undefined> = {}): string {
  const [section, id] = path;
  if (section === 'executions' && id && path.length === 2) {
    // Only the runvoy server serves `/logs`; a static host has the page at one path.
    const own = base(place);
    return `${own.endsWith('/') && isServed() ? `${own}logs` : own}?execution_id=${encodeURIComponent(id)}`;
  }
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value) {
      search.set(name, value);
    }
  }
  return `${base(place)}#/${path.map(encodeURIComponent).join('/')}${search.size ? `?${search}` : ''}`;
}

/** Whether this bundle was built into the server. */
export function isServed(): boolean {
  return import.meta.env['VITE_RUNVOY_SERVED'] === '1';
}

/** Parses the fragment of a log's page. */
export function fragment(hash: string): LogFragment {
  const token = hash.replace(/^#/, '').split('&').find((part) => part.startsWith('token='));
  return { token: token && decode(token.slice('token='.length)), lines: parseLineRange(hash) };
}

/**
 * Writes the fragment of a log's page; it keeps the token of a signed link, so that the address can
 * be shared.
 */
export function writeFragment({ token, lines }: LogFragment): string {
  const parts = [...(token ? [`token=${encodeURIComponent(token)}`] : []), ...(lines ? [formatLineRange(lines)] : [])];
  return `#${parts.join('&')}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
