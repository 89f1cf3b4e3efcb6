import { expect, it } from 'vitest';
import { countOf } from './needs';

it('counts each goal that needs a person once, and what is no goal beside them', () => {
  const question = (goal: string, closed = false) => ({ kind: 'question' as const, question: { goal }, closed });
  const stopped = (id: string, read = false) => ({ kind: 'goal' as const, goal: { id }, read });
  const found = countOf([question('a'), question('a'), question('b', true), stopped('c'), stopped('d', true), { kind: 'account' }, { kind: 'problem' }]);
  expect([...found.goals]).toEqual(['a', 'c']);
  expect(found.others).toBe(2);
});
