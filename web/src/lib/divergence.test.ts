import { describe, expect, it } from 'vitest';
import { divergenceOf, hasWorkToMerge } from './divergence';

const report = { id: 'g', into: 'main', ahead: 1, behind: 0, conflicts: [] };

describe('work beside its branch', () => {
  it('is counted in commits', () => {
    expect(divergenceOf(report)).toEqual({ short: '↑1', long: '1 commit ahead of main', conflicts: false });
    expect(divergenceOf({ ...report, ahead: 2, behind: 3 })).toMatchObject({ short: '↑2 ↓3', long: '2 commits ahead of main, 3 behind' });
  });

  it('names the paths that conflict', () => {
    const found = divergenceOf({ ...report, behind: 1, conflicts: ['a.txt', 'b\n.txt'] });
    expect(found).toMatchObject({ conflicts: true });
    expect(found?.long).toMatch(/^1 commit ahead of main, 1 behind; conflicts in a\.txt, b.*\.txt$/);
    expect(found?.long).not.toContain('\n');
  });

  it('is nothing where no branch is checked out, or the branch has the work', () => {
    expect(divergenceOf({ ...report, into: null })).toBeUndefined();
    expect(divergenceOf({ ...report, ahead: 0, behind: 4 })).toBeUndefined();
  });

  it('is looked for once there was an attempt, and until it is merged', () => {
    const trust = { level: 2, sandbox: null, in_place: false, confirmed: null };
    const goal = { id: 'g', phase: 'done', attempts: 1, merged: null, trust };
    expect(hasWorkToMerge(goal)).toBe(true);
    expect(hasWorkToMerge({ ...goal, attempts: 0 })).toBe(false);
    expect(hasWorkToMerge({ ...goal, trust: { ...trust, in_place: true } })).toBe(false);
  });
});
