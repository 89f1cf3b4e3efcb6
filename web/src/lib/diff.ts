/** Reads the diff that the server gives, in git's format. */

import { bytes } from './format';
import { exactPath } from './text';

export type LineKind = 'context' | 'added' | 'removed' | 'note';

export interface DiffLine {
  kind: LineKind;
  text: string;
  /** Its number before and after the change. */
  before: number | undefined;
  after: number | undefined;
}

export interface Hunk {
  header: string;
  lines: DiffLine[];
}

export interface DiffFile {
  path: string;
  /** The path before, when it was another. */
  from: string | undefined;
  change: 'added' | 'deleted' | 'renamed' | 'changed';
  binary: boolean;
  /** What else is to know about it: another mode, a symlink, the size of a binary file. */
  facts: string[];
  hunks: Hunk[];
  added: number;
  removed: number;
  /** Changes with every character of the file's diff. */
  digest: string;
}

export function parseDiff(text: string): DiffFile[] {
  const files = new Map<string, DiffFile>();
  const add = (file: DiffFile): void => {
    const first = files.get(file.path);
    files.set(file.path, first ? joined(first, file) : file);
  };
  let reader: Reader | undefined;
  for (const line of text.split('\n')) {
    if (line.startsWith('diff --git ') && !reader?.isInHunk()) {
      if (reader) add(reader.finish());
      reader = new Reader(line);
    } else {
      reader?.line(line);
    }
  }
  if (reader) add(reader.finish());
  return [...files.values()];
}

/** Git prints a file that became a symlink, or the other way around, as two: one that is deleted and one that is new. */
function joined(one: DiffFile, other: DiffFile): DiffFile {
  return {
    path: one.path,
    from: one.from ?? other.from,
    change: 'changed',
    binary: one.binary || other.binary,
    facts: [`${kindOf(one)} → ${kindOf(other)}`, ...one.facts, ...other.facts],
    hunks: [...one.hunks, ...other.hunks],
    added: one.added + other.added,
    removed: one.removed + other.removed,
    digest: digest(`${one.digest} ${other.digest}`),
  };
}

const SYMLINK = '120000';
const SUBMODULE = '160000';

/** A file that became a symlink has the mode of one in its two halves. */
function kindOf(half: DiffFile): string {
  return half.facts.some((fact) => fact.startsWith('symlink')) ? 'symlink' : half.facts.includes('submodule') ? 'submodule' : 'file';
}

/** `10 20` bytes before and after, of which one may be missing. */
function sizes(line: string): string {
  const [before, after] = line.split(' ').map((size) => (/^\d+$/.test(size) ? bytes(Number(size)) : undefined));
  if (before === undefined || after === undefined) return before ?? after ?? '';
  return `${before} → ${after}`;
}

class Reader {
  #file: DiffFile;
  #text: string[];
  #before = 0;
  #after = 0;
  #leftBefore = 0;
  #leftAfter = 0;
  #index = '';
  #modes: { before?: string; after?: string } = {};
  #size = '';

  constructor(header: string) {
    const path = pathOfHeader(header);
    this.#file = { path, from: undefined, change: 'changed', binary: false, facts: [], hunks: [], added: 0, removed: 0, digest: '' };
    this.#text = [header];
  }

  isInHunk(): boolean {
    return this.#leftBefore > 0 || this.#leftAfter > 0;
  }

  line(line: string): void {
    // A binary file has no lines of its own; its blobs, which the index line names, are what counts. The names of others may grow longer.
    if (line.startsWith('index ') && !this.isInHunk()) this.#index = line;
    else this.#text.push(line);
    if (this.isInHunk()) this.#inHunk(line);
    else if (line.startsWith('\\')) this.#add('note', line.slice(2));
    else this.#header(line);
  }

  finish(): DiffFile {
    while (this.#text.at(-1) === '') this.#text.pop();
    if (this.#file.binary) this.#text.push(this.#index);
    return { ...this.#file, facts: this.#facts(), digest: digest(this.#text.join('\n')) };
  }

  #facts(): string[] {
    const [before, after] = [this.#modes.before, this.#modes.after];
    const facts: string[] = [];
    if (before !== undefined && after !== undefined) facts.push(`mode ${before} → ${after}`);
    else if (after === '100755') facts.push('executable');
    const mode = after ?? before ?? / (\d{6})$/.exec(this.#index)?.[1];
    const lines = this.#file.hunks.flatMap((hunk) => hunk.lines);
    const target = (side: 'before' | 'after'): string | undefined => {
      const texts = lines.filter((line) => line[side] !== undefined).map((line) => line.text);
      return texts.length === 0 ? undefined : texts.join('\n');
    };
    const to = target('after') ?? target('before');
    if (mode === SYMLINK) facts.push(to === undefined ? 'symlink' : `symlink to ${exactPath(to)}`);
    if (mode === SUBMODULE) facts.push('submodule');
    if (this.#size !== '') facts.push(this.#size);
    return facts;
  }

  #header(line: string): void {
    const file = this.#file;
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
    if (hunk) {
      this.#before = Number(hunk[1]);
      this.#after = Number(hunk[3]);
      this.#leftBefore = Number(hunk[2] ?? 1);
      this.#leftAfter = Number(hunk[4] ?? 1);
      file.hunks.push({ header: (hunk[5] ?? '').trim(), lines: [] });
    } else if (line.startsWith('new file mode ')) {
      file.change = 'added';
      this.#modes.after = line.slice('new file mode '.length);
    } else if (line.startsWith('deleted file mode ')) {
      file.change = 'deleted';
      this.#modes.before = line.slice('deleted file mode '.length);
    } else if (line.startsWith('old mode ')) this.#modes.before = line.slice('old mode '.length);
    else if (line.startsWith('new mode ')) this.#modes.after = line.slice('new mode '.length);
    else if (line.startsWith('rename from ')) {
      file.change = 'renamed';
      file.from = unquote(line.slice('rename from '.length));
    } else if (line.startsWith('rename to ')) file.path = unquote(line.slice('rename to '.length));
    else if (line.startsWith('+++ ') && line !== '+++ /dev/null') file.path = withoutSide(line.slice(4));
    else if (line.startsWith('--- ') && line !== '--- /dev/null' && file.change === 'deleted') file.path = withoutSide(line.slice(4));
    else if (line.startsWith('Binary sizes ')) this.#size = sizes(line.slice('Binary sizes '.length));
    else if (line.startsWith('Binary files ') || line.startsWith('GIT binary patch')) file.binary = true;
  }

  #inHunk(line: string): void {
    if (line.startsWith('\\')) return this.#add('note', line.slice(2));
    const text = line.slice(1);
    if (line.startsWith('+')) {
      this.#file.added++;
      this.#leftAfter--;
      return this.#add('added', text, undefined, this.#after++);
    }
    if (line.startsWith('-')) {
      this.#file.removed++;
      this.#leftBefore--;
      return this.#add('removed', text, this.#before++);
    }
    this.#leftBefore--;
    this.#leftAfter--;
    this.#add('context', text, this.#before++, this.#after++);
  }

  #add(kind: LineKind, text: string, before?: number, after?: number): void {
    this.#file.hunks.at(-1)?.lines.push({ kind, text, before, after });
  }
}

/** The path in `diff --git a/x b/x`, for files without lines that name it. */
function pathOfHeader(header: string): string {
  const paths = header.slice('diff --git '.length);
  const quoted = / ("b\/.*")$/.exec(paths);
  if (quoted?.[1]) return withoutSide(quoted[1]);
  // Both halves are the same where nothing was renamed.
  const half = paths.slice((paths.length + 1) / 2);
  return withoutSide(half);
}

function withoutSide(path: string): string {
  return unquote(path.replace(/\t$/, '')).replace(/^[ab]\//, '');
}

/** Git writes odd paths in quotes, with their bytes in octal. */
function unquote(path: string): string {
  if (!path.startsWith('"') || !path.endsWith('"')) return path;
  const bytes: number[] = [];
  const escapes: Record<string, number> = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11 };
  const inner = path.slice(1, -1);
  for (const part of inner.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gu)) {
    const [, octal, escaped, plain] = part;
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (escaped !== undefined) bytes.push(escapes[escaped] ?? escaped.charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(plain));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** A short hash (FNV-1a, twice 32 bits). It only has to notice changes. */
export function digest(text: string): string {
  let first = 0x811c9dc5;
  let second = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    first = Math.imul(first ^ code, 0x01000193);
    second = Math.imul(second ^ code, 0x85ebca6b);
  }
  return (first >>> 0).toString(36) + (second >>> 0).toString(36);
}
