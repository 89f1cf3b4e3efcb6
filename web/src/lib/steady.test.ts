import { describe, expect, it } from 'vitest';
import { placeIn, Steady, STEADY_AFTER } from './steady';

describe('a request', () => {
  it('cannot be answered for at least 600 ms after it has appeared', () => {
    const steady = new Steady();
    expect(STEADY_AFTER).toBeGreaterThanOrEqual(600);
    expect(steady.look('goal.1 0:100', 5_000)).toBe(false);
    expect(steady.look('goal.1 0:100', 5_599)).toBe(false);
    expect(steady.look('goal.1 0:100', 5_000 + STEADY_AFTER)).toBe(true);
  });

  it('cannot be answered just after it has moved, or another one has taken its place', () => {
    const steady = new Steady();
    steady.look('goal.1 0:100', 0);
    expect(steady.look('goal.1 0:100', 9_000)).toBe(true);
    expect(steady.look('goal.1 0:20', 9_001)).toBe(false);
    expect(steady.look('goal.2 0:20', 9_900)).toBe(false);
    expect(steady.look('goal.2 0:20', 10_600)).toBe(true);
  });

  it('has the place of its element in the document', () => {
    const body = { offsetTop: 0, offsetLeft: 0, offsetParent: null };
    const card = { offsetTop: 40, offsetLeft: 8, offsetParent: body as unknown as Element };
    expect(placeIn({ offsetTop: 5, offsetLeft: 2, offsetParent: card as unknown as Element })).toBe('10:45');
  });
});
