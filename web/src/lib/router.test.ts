import { describe, expect, it } from 'vitest';
import { formatRoute, parseRoute, signInCode } from './router';

describe('addresses', () => {
  it('are read as they are written', () => {
    for (const address of ['#/', '#/?q=a+b&phase=running', '#/goal/1a2b3c4d', '#/goal/1a2b3c4d/review', '#/goal/1a/attempts?a=1&b=2', '#/new', '#/cost?by=agent']) {
      expect(formatRoute(parseRoute(address))).toBe(address);
    }
  });

  it('without a path lead to the board', () => {
    for (const none of ['', '#', '#/', '#code=x']) expect(parseRoute(none)).toEqual({ view: 'board', query: {} });
  });

  it('that name nothing are known as such', () => {
    for (const odd of ['/goal', '/goal/zz', '/goal/<script>', '//evil.example', '/nonsense']) {
      expect(parseRoute(`#${odd}`)).toEqual({ view: 'unknown', path: odd, query: {} });
    }
    expect(parseRoute('#/goal/1a/nonsense')).toEqual({ view: 'goal', id: '1a', tab: 'activity', query: {} });
  });

  it('have a code only in a sign-in link', () => {
    expect(signInCode('#code=Ab-_9')).toBe('Ab-_9');
    for (const other of ['#/', '#code=', '#code=a&b', '#/?code=x', '']) expect(signInCode(other)).toBeUndefined();
  });
});
