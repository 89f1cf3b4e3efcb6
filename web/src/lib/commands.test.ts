import { describe, expect, it } from 'vitest';
import { findCommands } from './commands';

const commands = [
  { title: 'Open the board', hint: '' },
  { title: 'Fix the board', hint: 'running shop 1a2b3c4d' },
  { title: 'Board of trade', hint: 'done bank' },
];
const titles = (typed: string): string[] => findCommands(commands, typed, 10).map((command) => command.title);

describe('commands', () => {
  it('are found by all words, in any order, in titles and hints', () => {
    expect(titles('shop BOARD')).toEqual(['Fix the board']);
    expect(titles('1a2b')).toEqual(['Fix the board']);
    expect(titles('nothing')).toEqual([]);
  });

  it('come first when their title begins with what was typed', () => {
    expect(titles('board')).toEqual(['Board of trade', 'Open the board', 'Fix the board']);
    expect(titles('').length).toBe(3);
  });
});
