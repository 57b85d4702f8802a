// How the page is built: one static bundle with relative addresses, so that it works under any path of any
// static host as well as from the server's own binary; and how its unit tests run.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

const proxy = { '/api': { target: process.env['RUNVOY_SERVER'] ?? '', ws: true } };

export default defineConfig({
  base: './',
  plugins: [svelte()],
  ...(process.env['VITEST'] && { resolve: { conditions: ['browser'] } }),
  build: {
    target: 'es2022',
    // The colours are given with light-dark(), which must not be rewritten for older browsers.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: process.env['RUNVOY_WEB_OUT'] ?? 'dist',
    emptyOutDir: true,
    // A data: address would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // For work on the page itself: the calls of `npm run dev` and `npm run preview` go to the server that this names.
  ...(process.env['RUNVOY_SERVER'] && { server: { proxy }, preview: { proxy } }),
  test: {
    include: ['tests/**/*.test.ts'],
    environment: 'node',
  },
});
