import { describe, expect, it } from 'vitest';
import { budgetLines } from './budget';
import type { GoalReport } from './types';

const usage = { input: null, output: null, cache_read: null, cache_write: null, cost_usd: null, estimated: false, partial: false };
const attempts = (...ends: (string | null)[]) => ends.map((end) => ({ end })) as unknown as GoalReport['attempts'];
const budget = { usd: { limit: 5, left: 5 }, attempts: { limit: 3, left: 2 } };

describe('the budget of a goal', () => {
  it('is used as far as that is reported', () => {
    const known = { ...usage, cost_usd: 2 };
    expect(budgetLines({ attempts: attempts('completed'), budget: { usd: { limit: 5, left: 3 } }, usage: known })).toEqual([{ axis: 'usd', limit: 5, used: 2, doubt: '' }]);
    expect(budgetLines({ attempts: [], budget, usage })[0]).toEqual({ axis: 'usd', limit: 5, used: 0, doubt: '' });
  });

  it('is unknown where agents report no cost', () => {
    const [usd, tries] = budgetLines({ attempts: attempts('completed', null), budget, usage });
    expect(usd).toEqual({ axis: 'usd', limit: 5, used: undefined, doubt: 'this agent reports no cost, so this limit cannot stop it' });
    expect(tries).toEqual({ axis: 'attempts', limit: 3, used: 1, doubt: '' });
    expect(budgetLines({ attempts: attempts('cancelled', null), budget, usage })[0]?.doubt).toBe('no cost reported so far');
  });
});
