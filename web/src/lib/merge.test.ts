import { describe, expect, it } from 'vitest';
import { mergeRequest, planRequest } from './merge';

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
