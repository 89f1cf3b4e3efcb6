import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

/** The server that `npm run dev` passes requests on to. */
const server = process.env.TOWLINE_SERVER ?? 'http://127.0.0.1:8689';

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } })],
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    // The server includes these files by name. One script and one stylesheet are small enough to be loaded together.
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/page.js',
        assetFileNames: 'assets/page[extname]',
        codeSplitting: false,
      },
    },
  },
  server: {
    // Its packages may be below the target folder of the workspace.
    fs: { allow: ['..'] },
    proxy: {
      '/api': {
        target: server,
        changeOrigin: true,
        // The server refuses pages of other origins, and the development server is one.
        configure: (proxy) => proxy.on('proxyReq', (request) => request.removeHeader('origin')),
      },
    },
  },
  test: { include: ['src/**/*.test.ts'] },
});
