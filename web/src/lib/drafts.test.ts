import { describe, expect, it } from 'vitest';
import { draftAfter, keptDraft, unsent } from './drafts';

it('what is typed while a message is sent stays', () => {
  expect(unsent('hello', 'hello')).toBe('');
  expect(unsent('hello\nand more', 'hello')).toBe('and more');
  expect(unsent('something else', 'hello')).toBe('something else');
});

describe('a draft', () => {
  it('is over when it was sent, but for what was typed meanwhile', () => {
    expect(draftAfter('fix it', 'fix it', 'fix it')).toBeUndefined();
    expect(draftAfter('fix it, please', 'fix it, please', 'fix it')).toBe(', please');
    expect(draftAfter(undefined, 'fix it', 'fix it')).toBeUndefined();
  });

  it('of another tab stays when it is not what was sent', () => {
    expect(draftAfter('from tab two', 'from tab one', 'from tab one')).toBe('from tab two');
    expect(keptDraft('from tab two', 'from tab one')).toBe('from tab two');
    expect(keptDraft('the same', 'the same')).toBe('');
  });
});
