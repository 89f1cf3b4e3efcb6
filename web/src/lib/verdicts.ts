/** What the checks of a goal say in a line. */

import { oneLine } from './text';
import type { GoalReport } from './types';

const LONGEST = 200;

/** What a card has beside its line. */
export interface Checked {
  /** Whether all checks passed before any work. */
  greenBefore: boolean;
  /** The first check that is red. */
  red: { name: string; line: string } | undefined;
}

export const GREEN_BEFORE = 'These checks passed before any work, so they do not show that it was done.';
export const GREEN_BEFORE_SHORT = 'checks passed before any work';

type Report = Pick<GoalReport, 'baseline' | 'attempts'>;

export function isGreenBefore({ baseline }: Pick<GoalReport, 'baseline'>): boolean {
  return baseline != null && baseline.met && baseline.checks.length > 0;
}

export function checkedOf(report: Report): Checked {
  const verdict = report.attempts.findLast((attempt) => attempt.verdict)?.verdict;
  const red = verdict?.checks.find((check) => !check.met);
  return {
    greenBefore: isGreenBefore(report),
    red: red && { name: oneLine(red.name), line: firstLine(red.problem || red.evidence) },
  };
}

function firstLine(text: string): string {
  const line = text.split('\n').map(oneLine).find((one) => one.trim() !== '') ?? '';
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
