// What this browser keeps for the page. One that may keep nothing, or has no room, only forgets.

/** What is kept under a name. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text under a name; nothing takes away what was there. */
export function keep(name: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    // Until the page is closed it is known all the same.
  }
}
