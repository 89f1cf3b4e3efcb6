import { describe, expect, it } from 'vitest';
import { inheritedOf, metadataOf, withInherited } from './followup';
import type { GoalReport } from './types';

const attempts = [{ verdict: { checks: [{ name: 'tests' }] } }] as unknown as GoalReport['attempts'];

describe('a goal that continues another one', () => {
  it('has the checks and agents of a goal that was created here', () => {
    const metadata = metadataOf(['cargo test'], ['a', 'b']);
    expect(inheritedOf({ agent: 'b', attempts, metadata })).toEqual({ checks: ['cargo test'], agents: ['a', 'b'], checkNames: [] });
  });

  it('has the agent of another goal, and the names of its checks', () => {
    expect(inheritedOf({ agent: 'b', attempts, metadata: { page: 7 } })).toEqual({ checks: [], agents: ['b'], checkNames: ['tests'] });
    expect(inheritedOf({ agent: null, attempts: [], metadata: {} })).toEqual({ checks: [], agents: [], checkNames: [] });
  });

  it('keeps what somebody has chosen', () => {
    const inherited = { checks: ['a'], agents: ['x'], checkNames: ['n'] };
    expect(withInherited({ checks: ['', 'b'], agents: ['y'] }, inherited)).toEqual({ checks: ['', 'b'], agents: ['y'], checkNames: [] });
    expect(withInherited({ checks: [''] }, inherited)).toEqual(inherited);
    expect(withInherited({}, { ...inherited, checks: [] }).checks).toEqual(['']);
  });
});
