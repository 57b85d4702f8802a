// Light, dark, or what the system says. The choice is kept; the colours themselves are CSS.
import { keep, kept } from './kept';

export type Theme = 'system' | 'light' | 'dark';

const STORED_AS = 'runvoy.theme';
export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

function stored(): Theme {
  const word = kept(STORED_AS);
  return THEMES.find((theme) => theme === word) ?? 'system';
}

class Look {
  theme: Theme = $state(stored());

  choose(theme: Theme): void {
    this.theme = theme;
    keep(STORED_AS, theme);
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

export const look = new Look();
