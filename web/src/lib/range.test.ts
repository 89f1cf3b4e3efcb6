import { describe, expect, it } from 'vitest';
import type { Envelope } from './envelope';
import { LogRange } from './range';

const event = (seq: number): Envelope => ({
  goal: 'g', seq, at: '', attempt: undefined, source: 'agent', below: false, raw: undefined, kind: 'notice', fields: {},
});
const events = (from: number, to: number): Envelope[] => Array.from({ length: to - from + 1 }, (_, i) => event(from + i));
const numbers = (range: LogRange): number[] => range.events.map((one) => one.seq);

describe('a part of a log', () => {
  it('takes what follows, drops what it has, and asks for what is missing', () => {
    const range = new LogRange();
    range.reset(events(5, 7), true);
    expect(range.accept(event(8))).toBe('taken');
    expect(range.accept(event(8))).toBe('known');
    expect(range.accept(event(6))).toBe('known');
    expect(range.accept(event(11))).toBe('gap');
    range.append(events(8, 11), true, 8);
    expect(range.accept(event(11))).toBe('known');
    expect(numbers(range)).toEqual([5, 6, 7, 8, 9, 10, 11]);
  });

  it('grows at its start without doubles', () => {
    const range = new LogRange();
    range.reset(events(5, 6), true);
    range.prepend(events(1, 5), 5);
    expect(numbers(range)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(range.reachesStart).toBe(true);
  });

  it('does not take news while it shows an earlier part', () => {
    const range = new LogRange();
    range.reset(events(1, 3), false);
    expect(range.accept(event(4))).toBe('elsewhere');
    range.append(events(4, 5), true, 3);
    expect(range.accept(event(6))).toBe('taken');
    expect(numbers(range)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('has no gap when a page comes after it has moved to another part', () => {
    const range = new LogRange();
    range.reset(events(800, 1_000), true);
    range.reset(events(1, 200), false);
    range.prepend(events(600, 799), 800);
    expect(range.append(events(1_001, 1_010), true, 1_000)).toBe(false);
    expect([range.first, range.last, range.following]).toEqual([1, 200, false]);
    range.reset(events(800, 1_000), true);
    expect(range.append(events(201, 400), false, 200)).toBe(false);
    expect([range.first, range.last, range.following]).toEqual([800, 1_000, true]);
  });

  it('is in order and single whatever order a page has', () => {
    const range = new LogRange();
    range.reset([event(3), event(1), event(2), event(2)], true);
    expect(numbers(range)).toEqual([1, 2, 3]);
  });

  it('drops the far end when it becomes long, and then does not claim to follow', () => {
    const range = new LogRange();
    range.reset(events(15_001, 25_000), true);
    range.prepend(events(1, 15_000), 15_001);
    expect([range.first, range.last, range.following]).toEqual([1, 20_000, false]);
    range.append(events(20_001, 25_000), true, 20_000);
    expect([range.first, range.last, range.following]).toEqual([5_001, 25_000, true]);
  });
});
