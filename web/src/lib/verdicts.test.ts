import { describe, expect, it } from 'vitest';
import type { GoalReport } from './types';
import { checkedOf, isGreenBefore } from './verdicts';

type Verdict = GoalReport['attempts'][number]['verdict'];
const attempt = (verdict: Verdict): GoalReport['attempts'][number] => ({ verdict }) as GoalReport['attempts'][number];
const check = (name: string, met: boolean, evidence = '', problem: string | null = null) => ({ name, met, evidence, problem, seconds: 1 });
const verdict = (...checks: ReturnType<typeof check>[]) => ({ checks }) as unknown as Verdict;

describe('the checks of a goal', () => {
  it('prove nothing when all of them passed before any work', () => {
    const checks = (...met: boolean[]) => ({ met: met.every(Boolean), checks: met.map((one) => ({ name: 'a', met: one })) });
    expect(isGreenBefore({ baseline: checks(true, true) })).toBe(true);
    expect(isGreenBefore({ baseline: checks(true, false) })).toBe(false);
    expect(isGreenBefore({ baseline: checks() })).toBe(false);
    expect(isGreenBefore({ baseline: null })).toBe(false);
  });

  it('show the first one that is red, with the first line of its output', () => {
    const attempts = [attempt(verdict(check('a', false))), attempt(verdict(check('a', true), check('b', false, '\n  \nexpected 2\ngot 3'))), attempt(null)];
    expect(checkedOf({ baseline: null, attempts })).toEqual({ greenBefore: false, red: { name: 'b', line: 'expected 2' } });
  });

  it('show why a check is red where its output does not', () => {
    const attempts = [attempt(verdict(check('a', false, 'much output', 'timed out')))];
    expect(checkedOf({ baseline: null, attempts }).red).toEqual({ name: 'a', line: 'timed out' });
    expect(checkedOf({ baseline: null, attempts: [attempt(verdict(check('a', true)))] }).red).toBeUndefined();
  });
});
