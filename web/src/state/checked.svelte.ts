/** What the checks of goals say: from reports that were read anyway, and else read for what is on the screen. */

import { SvelteMap } from 'svelte/reactivity';
import { api } from '../lib/client';
import { LazyReads } from '../lib/lazy';
import type { GoalLine, GoalReport } from '../lib/types';
import { checkedOf, type Checked } from '../lib/verdicts';

const AT_ONCE = 2;
/** Phases in which a card shows it. */
const SHOWN = new Set(['done', 'failed', 'escalated']);

const found = new SvelteMap<string, Checked>();
const reads = new LazyReads(AT_ONCE);

const stateOf = (phase: string, attempts: number): string => `${phase} ${attempts}`;

export const checked = {
  of: (goal: GoalLine): Checked | undefined => (SHOWN.has(goal.phase) ? found.get(goal.id) : undefined),

  take(report: GoalReport): void {
    if (!SHOWN.has(report.phase)) return;
    found.set(report.id, checkedOf(report));
    reads.known(report.id, stateOf(report.phase, report.attempts.length));
  },

  want(goal: GoalLine): void {
    if (!SHOWN.has(goal.phase) || goal.attempts === 0) return;
    reads.want(goal.id, stateOf(goal.phase, goal.attempts), async () => {
      found.set(goal.id, checkedOf((await api.goal(goal.id)).report));
    });
  },
};
