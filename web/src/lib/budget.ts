/** What a goal may use, and what it has used of it. */

import type { GoalReport } from './types';

export interface BudgetUse {
  axis: string;
  limit: number;
  /** Undefined where no agent has reported it. */
  used: number | undefined;
  /** Why the limit may not hold. */
  doubt: string;
}

type Report = Pick<GoalReport, 'attempts' | 'budget' | 'usage'>;

export function budgetLines({ attempts, budget, usage }: Report): BudgetUse[] {
  // An agent that was stopped may have reported nothing yet.
  const hasCompleted = attempts.some((attempt) => attempt.end === 'completed');
  return Object.entries(budget).map(([axis, { limit, left }]) => {
    const missing = attempts.length > 0 && isMissing(axis, usage);
    const what = axis === 'usd' ? 'cost' : 'tokens';
    return {
      axis,
      limit,
      used: missing ? undefined : Math.max(0, limit - left),
      doubt: !missing ? '' : hasCompleted ? `this agent reports no ${what}, so this limit cannot stop it` : `no ${what} reported so far`,
    };
  });
}

function isMissing(axis: string, usage: GoalReport['usage']): boolean {
  if (axis === 'usd') return usage.cost_usd == null;
  return axis === 'tokens' && [usage.input, usage.output, usage.cache_read, usage.cache_write].every((part) => part == null);
}
