// The theme: light, dark, or the system's. The choice is stored; the colours are CSS.
import { readItem, writeItem } from './storage';

export type Theme = 'system' | 'light' | 'dark';

const STORED_AS = 'runvoy.theme';
export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

function stored(): Theme {
  const word = readItem(STORED_AS);
  return THEMES.find((theme) => theme === word) ?? 'system';
}

class Appearance {
  theme: Theme = $state(stored());

  choose(theme: Theme): void {
    this.theme = theme;
    writeItem(STORED_AS, theme);
    this.apply();
  }

  apply(): void {
    const root = document.documentElement;
    if (this.theme === 'system') {
      delete root.dataset['theme'];
    } else {
      root.dataset['theme'] = this.theme;
    }
  }
}

export const appearance = new Appearance();
