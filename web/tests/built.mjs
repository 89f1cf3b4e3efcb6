/** Checks that `dist` is what the source gives: the program includes it as it is committed. */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
const committed = join(root, 'dist');
const built = mkdtempSync(join(tmpdir(), 'towline-page-'));
const files = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

try {
  await build({ root, logLevel: 'warn', build: { outDir: built, emptyOutDir: true } });
  const names = [...new Set([...files(committed), ...files(built)])];
  const content = (folder, name) => (files(folder).includes(name) ? readFileSync(join(folder, name)).toString('base64') : undefined);
  const differ = names.filter((name) => content(committed, name) !== content(built, name));
  if (differ.length > 0) {
    console.error(`error: web/dist is not what its source gives: ${differ.join(', ')}\nhelp: run 'npm run build' in web, and commit dist`);
    process.exitCode = 1;
  } else {
    console.log(`web/dist is what its source gives (${names.length} files)`);
  }
} finally {
  rmSync(built, { recursive: true, force: true });
}
