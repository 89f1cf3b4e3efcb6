import { expect, it } from 'vitest';
import { LazyReads } from './lazy';

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

it('reads few at a time, each once in a state, and again what failed', async () => {
  const lazy = new LazyReads(2);
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const read = (name: string) => (): Promise<void> => {
    started.push(name);
    return new Promise((resolve) => ends.push(resolve));
  };
  for (const id of ['a', 'b', 'c', 'a']) lazy.want(id, '1', read(id));
  expect(started).toEqual(['a', 'b']);
  ends[0]?.();
  await settled();
  expect(started).toEqual(['a', 'b', 'c']);
  ends.forEach((end) => end());
  await settled();
  lazy.want('a', '1', read('a'));
  expect(started.length).toBe(3);
  lazy.want('a', '2', () => Promise.reject(new Error('no')));
  await settled();
  lazy.want('a', '2', read('a again'));
  expect(started.at(-1)).toBe('a again');
  lazy.known('d', '1');
  lazy.want('d', '1', read('d'));
  expect(started.at(-1)).toBe('a again');
});
