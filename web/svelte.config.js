// Svelte for both the build and svelte-check: plain TypeScript in <script lang="ts">, runes everywhere.
import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true },
};
