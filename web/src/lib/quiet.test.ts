import { describe, expect, it } from 'vitest';
import { Quiet } from './quiet';

describe('shortcuts', () => {
  it('act while no field has gone', () => {
    expect(new Quiet().allows(0)).toBe(true);
  });

  it('act a second after the field with the focus has gone', () => {
    const quiet = new Quiet();
    quiet.lost(5_000);
    expect(quiet.allows(6_000)).toBe(true);
    expect(quiet.allows(6_001)).toBe(true);
  });

  it('wait until somebody has paused typing', () => {
    const quiet = new Quiet();
    quiet.lost(0);
    expect([300, 900, 1_700, 2_500].map((now) => quiet.allows(now))).toEqual([false, false, false, false]);
    expect(quiet.allows(3_500)).toBe(true);
  });
});
