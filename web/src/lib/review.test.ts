import { describe, expect, it } from 'vitest';
import { parseDiff, type DiffFile } from './diff';
import { commentOn, followUpPrompt, isOutdated, lineOfComment, messageOfComments, validTicks, withoutSent, type Comment } from './review';

const TEXT = `diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -10,3 +10,4 @@
 one
-two
+2
+2b
 three
`;
const read = (text: string): DiffFile => {
  const [file] = parseDiff(text);
  if (!file) throw new Error('no file');
  return file;
};
const on = (file: DiffFile, one: number, other: number, text = 'why?'): Comment => {
  const comment = commentOn(file, one, other, text, 'c');
  if (!comment) throw new Error('no comment');
  return comment;
};

describe('comments on a diff', () => {
  it('name their lines on the side of the last one, in either direction', () => {
    const file = read(TEXT);
    expect(on(file, 2, 2)).toMatchObject({ side: 'after', from: 11, to: 11, quote: ['+2'] });
    expect(on(file, 3, 0)).toMatchObject({ side: 'after', from: 10, to: 12, quote: [' one', '-two', '+2', '+2b'] });
    expect(on(file, 1, 1)).toMatchObject({ side: 'before', from: 11, to: 11 });
  });

  it('become one message with the places and the lines', () => {
    const file = read(TEXT);
    expect(messageOfComments([on(file, 4, 4, 'last'), on(file, 1, 1, ' gone ')])).toBe(
      'Comments on your change:\n\na.py:11 (removed)\n> -two\ngone\n\na.py:13\n>  three\nlast',
    );
  });

  it('become the prompt of a follow-up goal, after what its draft has already', () => {
    const file = read(TEXT);
    const first = followUpPrompt(' ', [on(file, 1, 1, 'gone')], '1a2b', 'Count');
    expect(first).toBe('Follow up on 1a2b, Count, with these comments on its change:\n\na.py:11 (removed)\n> -two\ngone');
    expect(followUpPrompt(`${first}\n`, [on(file, 4, 4, 'last')], '1a2b', 'Count')).toBe(
      `${first}\n\nMore comments on the change of 1a2b:\n\na.py:13\n>  three\nlast`,
    );
  });

  it('stay with their line until it changes', () => {
    const file = read(TEXT);
    const comment = on(file, 2, 2);
    expect(lineOfComment(file, comment)).toBe(2);
    expect(lineOfComment(read(TEXT.replace('+2\n', '+two!\n')), comment)).toBeUndefined();
  });

  it('stay when they were written or changed while others were sent', () => {
    const file = read(TEXT);
    const [first, second, third] = [on(file, 1, 1), on(file, 2, 2), on(file, 3, 3)];
    const changed = { ...second, text: 'changed' };
    expect(withoutSent([first, changed, third], [first, second])).toEqual([changed, third]);
  });

  it('leave a tick only on files that have not changed', () => {
    const file = read(TEXT);
    const ticks = { [file.path]: file.digest };
    expect(validTicks([file], ticks).has('a.py')).toBe(true);
    expect(validTicks([read(TEXT.replace('+2b', '+2c'))], ticks).has('a.py')).toBe(false);
    expect([isOutdated(file, ticks), isOutdated(read(TEXT.replace('+2b', '+2c')), ticks), isOutdated(file, {})]).toEqual([false, true, false]);
  });
});
