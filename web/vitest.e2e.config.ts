import { defineConfig } from 'vitest/config';

// The sign-in link works once, so that all tests share one browser and run one after the other.
export default defineConfig({
  test: { include: ['tests/**/*.e2e.ts'], testTimeout: 120_000, hookTimeout: 60_000, fileParallelism: false, bail: 1 },
});
