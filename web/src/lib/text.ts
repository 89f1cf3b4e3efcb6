/**
 * Text of agents is hostile. Everything they wrote passes through here before it is shown, and is shown as text and never as HTML.
 */

/** Sequences of terminals: CSI, OSC and other strings, and two-character ones. */
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]/g;

/** Control characters but tab and newline. */
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * What changes the order of text, or is there and cannot be seen. The terminal has the same list, in `crates/core/src/plain_text.rs`.
 */
export const UNSEEN: readonly (readonly [first: number, last: number])[] = [
  [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x200b, 0x200f], [0x2028, 0x202e],
  [0x2060, 0x206f], [0x2800, 0x2800], [0x3164, 0x3164], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff9, 0xfffb],
  [0x1bca0, 0x1bca3], [0x1d159, 0x1d159], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];

const unseen = UNSEEN.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join('');

/** Emoji are made of several characters: a picture and its form, pictures with a joiner between them, a digit in a box. */
const EMOJI = '\\p{Extended_Pictographic}\\ufe0f?[\\u{1f3fb}-\\u{1f3ff}]?(?:\\u200d\\p{Extended_Pictographic}\\ufe0f?[\\u{1f3fb}-\\u{1f3ff}]?)*|[0-9#*]\\ufe0f\\u20e3';

const INVISIBLE = new RegExp(`(${EMOJI})|[${unseen}]`, 'gu');

/** One character that cannot be seen, many times. */
export const UNSEEN_RUN = `([${unseen}\\p{Cf}\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f])\\1{7,}`;

/** More combining marks on one character than any language needs. */
const PILES = /(\p{M}{4})(\p{M}+)/gu;

/** The text with everything that could deceive made visible or taken out. */
export function clean(text: string): string {
  return text
    .replace(ESCAPES, '')
    // Programs that redraw a line return to its start; here each version has its own.
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, named)
    .replace(INVISIBLE, (found, emoji?: string) => emoji ?? named(found))
    .replace(PILES, '$1')
    .toWellFormed();
}

/**
 * The text with nothing taken out: control characters are shown by their code. For commands, paths and code, of which a terminal sequence
 * could otherwise hide a part from the person who permits or reviews it.
 */
export function exact(text: string): string {
  return text
    .replace(/\r\n/g, '\n')
    .replace(CONTROLS, named)
    .replace(INVISIBLE, (found, emoji?: string) => emoji ?? named(found))
    .replace(PILES, (_, shown: string, rest: string) => shown + Array.from(rest, named).join(''))
    .toWellFormed();
}

/** The text on one line, for titles and lists. */
export function oneLine(text: string): string {
  return clean(text.slice(0, 2_000)).replace(/\s+/g, ' ').trim();
}

/** A command on one line. */
export function exactLine(text: string): string {
  return exact(text.slice(0, 4_100)).replace(/\s+/g, ' ').trim();
}

/** A path. Blanks that could not be told from others are shown by their code. No path is longer than 4,096 bytes. */
export function exactPath(path: string): string {
  return path
    .slice(0, 4_100)
    .split(/(^\s+|\s+$|[^\S ]|(?<=\s)\s)/)
    .map((part, place) => (place % 2 === 1 ? Array.from(part, named).join('') : exact(part)))
    .join('');
}

function named(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

export interface Cut {
  text: string;
  /** How many characters are left out. */
  left: number;
}

/** The beginning of a text. It is cut before it is cleaned, so that a line of 10 MB costs no more than what is shown. */
export function cut(text: string, length: number, show = clean): Cut {
  if (text.length <= length) return { text: show(text), left: 0 };
  return { text: show(text.slice(0, length)), left: text.length - length };
}

/** The end of a text, which is where errors are. */
export function cutStart(text: string, length: number, show = clean): Cut {
  if (text.length <= length) return { text: show(text), left: 0 };
  return { text: show(text.slice(-length)), left: text.length - length };
}

export interface Piece {
  text: string;
  kind: 'text' | 'link' | 'code' | 'block';
}

const BLOCK = /^```[^\n`]*\n([\s\S]*?)(?:^```[ \t]*$|(?![\s\S]))/m;
const INLINE = /`([^`\n]+)`|(https?:\/\/[^\s<>"'`\u27e8\u27e9]+)/g;

/** The parts of a clean text: code between fences and backticks, and links to web pages. Everything else stays as it is. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let rest = text;
  for (let block = BLOCK.exec(rest); block !== null; block = BLOCK.exec(rest)) {
    found.push(...inline(rest.slice(0, block.index)));
    found.push({ kind: 'block', text: (block[1] ?? '').replace(/\n$/, '') });
    rest = rest.slice(block.index + block[0].length).replace(/^\n/, '');
  }
  return [...found, ...inline(rest)];
}

function inline(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, address] = match;
    const link = address?.replace(/[.,;:!?)\]}]+$/, '');
    if (link !== undefined && !isWebAddress(link)) continue;
    if (match.index > from) found.push({ kind: 'text', text: text.slice(from, match.index) });
    found.push(link === undefined ? { kind: 'code', text: code ?? '' } : { kind: 'link', text: link });
    from = match.index + (link ?? whole).length;
  }
  if (from < text.length) found.push({ kind: 'text', text: text.slice(from) });
  return found;
}

/** Whether an address may be a link. */
export function isWebAddress(address: string): boolean {
  try {
    const url = new URL(address);
    return (url.protocol === 'https:' || url.protocol === 'http:') && url.username === '' && url.password === '';
  } catch {
    return false;
  }
}
