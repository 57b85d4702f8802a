// The current route as state. Links are plain links: one listener handles clicks on links of this
// page with the browser's history.
import type { LineRange } from './log/permalink';
import { base, fragment, href, read, writeFragment, type LogFragment, type Route } from './route';

class Navigation {
  route: Route = $state.raw(read(location));
  fragment: LogFragment = $state.raw(fragment(location.hash));

  /** Follows the address bar until the returned function is called. */
  watch(): () => void {
    const moved = () => this.look();
    const clicked = (event: MouseEvent) => this.take(event);
    addEventListener('popstate', moved);
    addEventListener('hashchange', moved);
    document.addEventListener('click', clicked);
    return () => {
      removeEventListener('popstate', moved);
      removeEventListener('hashchange', moved);
      document.removeEventListener('click', clicked);
    };
  }

  /** The absolute address of the current page. */
  get address(): string {
    // Reading the route makes the caller reactive to the next one.
    void this.route;
    return location.href;
  }

  /** Navigates to a route. */
  go(path: readonly string[], query: Record<string, string | undefined> = {}, options: { replace?: boolean } = {}): void {
    const address = href(location, path, query);
    history[options.replace ? 'replaceState' : 'pushState'](null, '', address);
    this.look();
  }

  /** The address of lines of the log that is shown. */
  lines(lines: LineRange | null): string {
    return `${location.pathname}${location.search}${writeFragment({ token: this.fragment.token, lines })}`.replace(/#$/, '');
  }

  /** Puts the selected lines into the address. */
  choose(lines: LineRange | null): void {
    history.replaceState(null, '', this.lines(lines));
    this.fragment = fragment(location.hash);
  }

  private look(): void {
    const next = read(location);
    const turned = next.path.join('/') !== this.route.path.join('/');
    this.fragment = fragment(location.hash);
    if (turned || next.query.toString() !== this.route.query.toString()) {
      this.route = next;
    }
    if (turned) {
      scrollTo(0, 0);
      // Keyboard and screen reader users continue at the start of the new page.
      document.getElementById('main')?.focus({ preventScroll: true });
    }
  }

  private take(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!(link instanceof HTMLAnchorElement) || !plain || event.defaultPrevented || link.target || link.hasAttribute('download')) {
      return;
    }
    const ours = link.origin === location.origin && base(link) === base(location);
    const route = link.hash.startsWith('#/') || new URLSearchParams(link.search).has('execution_id');
    if (ours && route) {
      event.preventDefault();
      history.pushState(null, '', link.href);
      this.look();
    }
  }
}

export const navigation = new Navigation();

/** The address of a route, for a link. */
export function to(path: readonly string[], query: Record<string, string | undefined> = {}): string {
  return href(location, path, query);
}

/** The absolute address of an execution's page, to share. */
export function permalink(id: string): string {
  return new URL(href(location, ['executions', id]), location.href).href;
}
