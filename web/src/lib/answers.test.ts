import { describe, expect, it } from 'vitest';
import { answerText, chosenOf, closedBecause } from './answers';

const colour = { options: [{ label: 'red' }, { label: 'blue, or so' }] };

describe('the text of an answer', () => {
  it('names options by their numbers', () => {
    expect(answerText([colour], [{ options: [1], own: '' }])).toBe('2');
    expect(answerText([colour], [{ options: [0, 1], own: '' }])).toBe('1, 2');
  });

  it('is one line for each part', () => {
    expect(answerText([colour, colour], [{ options: [0], own: '' }, { options: [], own: 'a\nb' }])).toBe('1\na b');
  });

  it('uses labels beside words of one’s own', () => {
    expect(answerText([colour], [{ options: [0], own: 'and green' }])).toBe('red, and green');
  });

  it('is missing while a part is not answered', () => {
    expect(answerText([colour, colour], [{ options: [0], own: '' }, { options: [], own: ' ' }])).toBeUndefined();
  });
});

describe('a draft of an answer', () => {
  it('has the choices and words of each part', () => {
    const chosen = [{ options: [1], own: '' }, { options: [], own: 'green' }];
    expect(chosenOf([colour, colour], JSON.parse(JSON.stringify(chosen)))).toEqual(chosen);
  });

  it('is empty when nothing fits the parts', () => {
    const empty = { options: [], own: '' };
    expect(chosenOf([colour, colour], undefined)).toEqual([empty, empty]);
    expect(chosenOf([colour], 'words')).toEqual([empty]);
    expect(chosenOf([colour], [{ options: [2, 'x', -1], own: 3 }])).toEqual([empty]);
  });
});

describe('a question that was closed elsewhere', () => {
  it('says why', () => {
    expect(closedBecause('the\nblue one.', { phase: 'running' })).toBe('Answered elsewhere: the blue one.');
    expect(closedBecause(undefined, { phase: 'cancelled' })).toBe('The goal has ended.');
    expect(closedBecause(undefined, { phase: 'running' })).toBe('The agent is no longer waiting for an answer.');
    expect(closedBecause(undefined, undefined)).toBe('The agent is no longer waiting for an answer.');
  });
});
