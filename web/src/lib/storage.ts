// This browser's local storage. Where it is blocked or full, values are lost when the page closes.

/** The stored text of a name. */
export function readItem(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Stores a text under a name; `null` removes it. */
export function writeItem(name: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    // The page still has the value until it is closed.
  }
}
