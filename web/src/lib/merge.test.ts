import { describe, expect, it } from 'vitest';
import { conflictOf, mergeRequest, planRequest, resolveCommand, resolvePrompt } from './merge';

const choice = { into: ' ', style: 'squash', message: '', unproven: false } as const;

describe('a merge', () => {
  it('is planned for the branch that is checked out, or the one that was named', () => {
    expect(planRequest(choice)).toEqual({ dry_run: true, squash: true, no_ff: false, unproven: false });
    expect(planRequest({ ...choice, into: ' next ', message: 'Why' })).toMatchObject({ into: 'next', message: 'Why' });
  });

  it('takes the work of the plan into the branch of the plan', () => {
    const request = { dry_run: false, squash: true, no_ff: false, unproven: false, into: 'main', candidate: '1a2b' };
    expect(mergeRequest(choice, { into: 'main', candidate: '1a2b' })).toEqual(request);
  });
});

describe('a merge with conflicts', () => {
  it('is recognised by its message', () => {
    expect(conflictOf('the work and `main` changed the same places in a.txt, b c.txt and 3 more')).toEqual({ into: 'main', paths: 'a.txt, b c.txt and 3 more' });
    expect(conflictOf('there is no branch `main` in /r; `git branch` lists them')).toBeUndefined();
  });

  it('has ways out', () => {
    const candidate = '0123456789abcdef0123';
    expect(resolvePrompt(candidate)).toBe('merge 0123456789ab and resolve the conflicts');
    expect(resolveCommand(candidate, 'main')).toBe('git switch main && git merge 0123456789ab');
  });
});
