import { expect, it } from 'vitest';
import { Latest } from './latest';

it('drops replies and failures of earlier requests', async () => {
  const latest = new Latest();
  const seen: string[] = [];
  const reply = (value: string): void => void seen.push(value);
  const fail = (error: unknown): void => void seen.push(String(error));
  let finish = (_: string): void => undefined;
  let refuse = (_: string): void => undefined;
  const first = latest.send(() => new Promise<string>((resolve) => { finish = resolve; }), reply, fail);
  const second = latest.send(() => new Promise<string>((_, reject) => { refuse = reject; }), reply, fail);
  await latest.send(() => Promise.resolve('third'), reply, fail);
  finish('first');
  refuse('second');
  await Promise.all([first, second]);
  expect(seen).toEqual(['third']);
  await latest.send(() => Promise.reject(new Error('no')), reply, fail);
  expect(seen).toEqual(['third', 'Error: no']);
});
