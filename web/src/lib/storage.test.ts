import { afterEach, expect, it, vi } from 'vitest';
import { loadJson, storeJson } from './storage';

afterEach(() => vi.unstubAllGlobals());

it('reports whether a value is stored', () => {
  const values = new Map<string, string>();
  vi.stubGlobal('localStorage', { getItem: (key: string) => values.get(key) ?? null, setItem: (key: string, value: string) => values.set(key, value) });
  expect(storeJson('one', { a: 1 })).toBe(true);
  expect(loadJson('one', {})).toEqual({ a: 1 });
  vi.stubGlobal('localStorage', { setItem: () => { throw new Error('full'); } });
  expect(storeJson('one', { a: 2 })).toBe(false);
});
