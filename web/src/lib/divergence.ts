/** How far the work of a goal and the branch that would get it have moved apart, in words. */

import { plural } from './format';
import { oneLine } from './text';
import type { DivergenceReport, GoalLine } from './types';

export interface Divergence {
  short: string;
  long: string;
  conflicts: boolean;
}

/** What decides whether a goal has work to compare, and when that is another one. */
export type Compared = Pick<GoalLine, 'id' | 'phase' | 'attempts' | 'merged' | 'trust'>;

export function hasWorkToMerge(goal: Compared): boolean {
  return goal.attempts > 0 && !goal.merged && goal.trust?.in_place !== true;
}

/** Nothing where no branch is checked out, or the branch has all of the work. */
export function divergenceOf(report: DivergenceReport): Divergence | undefined {
  const { ahead, behind, conflicts } = report;
  if (!report.into || ahead === 0) return undefined;
  const into = oneLine(report.into);
  const commits = `${plural(ahead, 'commit')} ahead of ${into}${behind > 0 ? `, ${behind} behind` : ''}`;
  const paths = conflicts.length > 0 ? `; conflicts in ${conflicts.map(oneLine).join(', ')}` : '';
  return { short: `↑${ahead}${behind > 0 ? ` ↓${behind}` : ''}`, long: commits + paths, conflicts: conflicts.length > 0 };
}
