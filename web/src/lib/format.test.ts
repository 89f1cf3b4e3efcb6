import { describe, expect, it } from 'vitest';
import { ago, cost, count, countdown, dollars, duration, shortId, spent, tokens } from './format';

describe('numbers for people', () => {
  it('are short', () => {
    expect([0.12, 5, 12.4, 65, 725, 3_600, 90_061].map(duration)).toEqual(['0.1 s', '5.0 s', '12 s', '1 min 5 s', '12 min', '1 h', '1 d 1 h']);
    expect([0, 5, 65, 3_725, 200_000].map(countdown)).toEqual(['0 s', '5 s', '1 min 5 s', '1 h 2 min', '2 d 7 h']);
    expect([12, 12_345, 234_567, 3_456_789].map(count)).toEqual(['12', '12.3k', '235k', '3.5M']);
    expect(shortId('01a1ef7a-0e4f-73a5-a155-aae6a73602f7')).toBe('a73602f7');
    expect(ago('2026-11-18T10:00:00Z', Date.parse('2026-11-18T12:00:00Z'))).toBe('2 h ago');
  });

  it('show what is not known as unknown, and never as zero', () => {
    expect(cost({ cost_usd: null, estimated: false })).toBe('unknown');
    expect(cost({ cost_usd: 0, estimated: false })).toBe('$0.00');
    expect(cost({ cost_usd: 1.5, estimated: true, partial: true })).toBe('~$1.50+');
    expect(dollars(0.0012)).toBe('$0.0012');
    expect(tokens({ estimated: false })).toBe('unknown');
  });

  it('show that nothing was spent where nothing ran', () => {
    const total = { cost_usd: null, estimated: false, partial: false };
    const lines = [{ key: 'a', usage: total }] as unknown as Parameters<typeof spent>[0]['lines'];
    expect(spent({ lines: [], total })).toBe('$0.00');
    expect(spent({ lines, total })).toBe('unknown');
  });
});
