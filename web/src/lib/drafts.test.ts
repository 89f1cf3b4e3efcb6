import { expect, it } from 'vitest';
import { unsent } from './drafts';

it('what is typed while a message is sent stays', () => {
  expect(unsent('hello', 'hello')).toBe('');
  expect(unsent('hello\nand more', 'hello')).toBe('and more');
  expect(unsent('something else', 'hello')).toBe('something else');
});
