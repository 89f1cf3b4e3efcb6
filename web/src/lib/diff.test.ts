import { describe, expect, it } from 'vitest';
import { parseDiff } from './diff';
import { bytes } from './format';

const CHANGED = `diff --git a/lib/a.py b/lib/a.py
index 1..2 100644
--- a/lib/a.py
+++ b/lib/a.py
@@ -1,3 +1,3 @@ def a():
 one
-two
+2
 three
\\ No newline at end of file
`;

describe('a diff', () => {
  it('has the lines of each file with their numbers', () => {
    const [file] = parseDiff(CHANGED);
    expect(file).toMatchObject({ path: 'lib/a.py', change: 'changed', added: 1, removed: 1, binary: false });
    expect(file?.hunks[0]?.header).toBe('def a():');
    expect(file?.hunks[0]?.lines).toEqual([
      { kind: 'context', text: 'one', before: 1, after: 1 },
      { kind: 'removed', text: 'two', before: 2, after: undefined },
      { kind: 'added', text: '2', before: undefined, after: 2 },
      { kind: 'context', text: 'three', before: 3, after: 3 },
      { kind: 'note', text: 'No newline at end of file', before: undefined, after: undefined },
    ]);
  });

  it('knows new, deleted, renamed and binary files', () => {
    const files = parseDiff(`diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+x
diff --git a/old b/old
deleted file mode 100644
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/p q b/r s
similarity index 100%
rename from p q
rename to r s
diff --git a/pic.png b/pic.png
Binary files a/pic.png and b/pic.png differ
diff --git a/empty file b/empty file
new file mode 100644
`);
    expect(files.map(({ path, from, change, binary }) => [path, from, change, binary])).toEqual([
      ['new', undefined, 'added', false],
      ['old', undefined, 'deleted', false],
      ['r s', 'p q', 'renamed', false],
      ['pic.png', undefined, 'changed', true],
      ['empty file', undefined, 'added', false],
    ]);
  });

  it('has a file that became a symlink once', () => {
    const text = (target: string): string => `diff --git a/f b/f
deleted file mode 100644
--- a/f
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/f b/f
new file mode 120000
--- /dev/null
+++ b/f
@@ -0,0 +1 @@
+${target}
\\ No newline at end of file
`;
    const files = parseDiff(text('a'));
    expect(files).toMatchObject([{ path: 'f', change: 'changed', added: 1, removed: 1, facts: ['file → symlink', 'symlink to a'] }]);
    expect(files[0]?.hunks.flatMap((hunk) => hunk.lines).map((line) => line.text)).toEqual(['x', 'a', 'No newline at end of file']);
    expect(parseDiff(text('b'))[0]?.digest).not.toBe(files[0]?.digest);
  });

  it('names another mode, a symlink with its target, and the sizes of a binary file', () => {
    const files = parseDiff(`diff --git a/run b/run
old mode 100644
new mode 100755
diff --git a/new b/new
new file mode 100755
diff --git a/l b/l
index 1..2 120000
--- a/l
+++ b/l
@@ -1 +1 @@
-old
\\ No newline at end of file
+/etc/passwd\u202e
\\ No newline at end of file
diff --git a/pic.png b/pic.png
index 1..2 100644
Binary files a/pic.png and b/pic.png differ
Binary sizes 1500 20
diff --git a/new.png b/new.png
new file mode 100644
index 0..2
Binary files /dev/null and b/new.png differ
Binary sizes - 20
diff --git a/sub b/sub
index 1..2 160000
--- a/sub
+++ b/sub
@@ -1 +1 @@
-Subproject commit 1
+Subproject commit 2
`);
    expect(files.map((file) => [file.path, ...file.facts])).toEqual([
      ['run', 'mode 100644 → 100755'],
      ['new', 'executable'],
      ['l', 'symlink to /etc/passwd⟨U+202E⟩'],
      ['pic.png', `${bytes(1500)} → ${bytes(20)}`],
      ['new.png', bytes(20)],
      ['sub', 'submodule'],
    ]);
  });

  it('of a binary file has a digest that changes with the file', () => {
    const [one, same, other] = ['1..2', '1..2', '1..3'].map((blobs) => parseDiff(`diff --git a/p b/p\nindex ${blobs} 100644\nBinary files a/p and b/p differ\n`)[0]?.digest);
    expect(same).toBe(one);
    expect(other).not.toBe(one);
  });

  it('takes lines that look like headers for what they are', () => {
    const [file, other] = parseDiff(`diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,2 +1,2 @@
--- a/y
-diff --git a/y b/y
+++ b/y
+@@ -1 +1 @@
`);
    expect(other).toBeUndefined();
    expect(file?.path).toBe('x');
    expect(file?.hunks[0]?.lines.map((line) => line.text)).toEqual(['-- a/y', 'diff --git a/y b/y', '++ b/y', '@@ -1 +1 @@']);
  });

  it('reads paths in quotes', () => {
    const [file] = parseDiff('diff --git "a/\\303\\244 \\"b\\".txt" "b/\\303\\244 \\"b\\".txt"\nnew file mode 100644\n');
    expect(file?.path).toBe('ä "b".txt');
  });

  it('has a digest that changes with the lines and not with the commits', () => {
    const [one] = parseDiff(CHANGED);
    const [same] = parseDiff(CHANGED.replace('index 1..2', 'index 3..4'));
    const [other] = parseDiff(CHANGED.replace('+2', '+3'));
    expect(same?.digest).toBe(one?.digest);
    expect(other?.digest).not.toBe(one?.digest);
  });

  it('is empty without text, and ends where the text ends', () => {
    expect(parseDiff('')).toEqual([]);
    expect(parseDiff('diff --git a/x b/x\n@@ -1,9 +1,9 @@\n one')[0]?.hunks[0]?.lines.length).toBe(1);
  });
});
