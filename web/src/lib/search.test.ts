import { expect, it } from 'vitest';
import { hasWords } from './search';

it('a goal is found by its words in any order and any place', () => {
  const goal = { id: '01a1f204-7a6c', title: 'Mend the parser of dates', prompt: 'It fails for leap years', agent: 'claude', repository: '/srv/shop' };
  for (const typed of ['', ' ', 'parser', 'dates parser', 'PARSER mend', 'leap parser', 'shop claude', '7a6c mend']) expect(hasWords(goal, typed), typed).toBe(true);
  for (const typed of ['parsers', 'parser tomorrow', 'mendtheparser']) expect(hasWords(goal, typed), typed).toBe(false);
  expect(hasWords({ id: '1', title: 'a', agent: null }, 'null')).toBe(false);
});
