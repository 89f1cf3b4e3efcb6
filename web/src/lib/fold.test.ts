import { describe, expect, it } from 'vitest';
import { fold } from './fold';

const shown = (text: string, more?: number): string => fold(text, more).segments.map((one) => (one.kind === 'text' ? one.text : `[${one.text}]`)).join('');

describe('a command', () => {
  it('of some lines is shown as it is', () => {
    expect(fold('cargo test\nrm -rf out')).toEqual({ segments: [{ kind: 'text', text: 'cargo test\nrm -rf out' }], left: 0, lines: 0 });
    expect(shown('')).toBe('');
  });

  it('shows its end behind any number of blank lines and blanks, which are counted', () => {
    expect(shown(`echo hello${'\n'.repeat(500)}rm -rf ~`)).toBe('echo hello[499 blank lines]rm -rf ~');
    expect(shown(`echo hello${' '.repeat(9_000)}; rm -rf ~`)).toBe('echo hello[9000 blanks]; rm -rf ~');
    expect(shown(`echo hello${'\u3000'.repeat(40)}\n \n\t\n \n \n \n; rm -rf ~`)).toMatch(/^echo hello\[40 blanks\]\[5 blank lines\]; rm -rf ~$/);
    expect(shown(`echo hello${'\u2800'.repeat(5_000)}; rm -rf ~`)).toMatch(/^echo hello\[⟨U\+2800⟩ \d+ times\].*; rm -rf ~$/);
  });

  it('that is long shows its beginning and its end, and how much is left', () => {
    const middle = 'true;\n'.repeat(2_000);
    const { left, lines } = fold(`first\n${middle}last`);
    expect(left).toBeGreaterThan(10_000);
    expect(lines).toBeGreaterThan(1_900);
    expect(shown(`first\n${middle}last`)).toMatch(/^first\n[^]*characters not shown\][^]*last$/);
    expect(fold(`a${'x'.repeat(100_000)}z`).left).toBe(100_002 - 4_500);
    expect(shown(`a${'x'.repeat(100_000)}z`)).toMatch(/z$/);
  });

  it('shows more on demand until nothing is left', () => {
    const text = `first\n${'true;\n'.repeat(2_000)}last`;
    expect(fold(text, 8).left).toBeLessThan(fold(text).left);
    expect(fold(text, 512)).toMatchObject({ left: 0, lines: 0 });
    expect(shown(text, 512)).toBe(text);
  });
});
