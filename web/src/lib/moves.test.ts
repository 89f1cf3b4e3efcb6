import { expect, it } from 'vitest';
import { moves } from './moves';

it('a list moves when another item takes a place', () => {
  expect(moves(['a', 'b'], ['b'])).toBe(true);
  expect(moves(['a'], ['b', 'a'])).toBe(true);
  expect(moves(['a'], ['b'])).toBe(true);
  expect(moves([], ['a'])).toBe(false);
  expect(moves(['a'], ['a', 'b'])).toBe(false);
  expect(moves(['a', 'b'], ['a'])).toBe(false);
});
