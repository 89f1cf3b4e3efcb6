/**
 * Text of agents is hostile. Everything they wrote passes through here before it is shown, and is shown as text and never as HTML.
 */

/** Sequences of terminals: CSI, OSC and other strings, and two-character ones. */
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]/g;

/** Control characters but tab and newline. */
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** What changes the order of text, or is there and cannot be seen. */
const INVISIBLE =
  /[\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** More combining marks on one character than any language needs. */
const PILES = /(\p{M}{4})(\p{M}+)/gu;

/** The text with everything that could deceive made visible or taken out. */
export function clean(text: string): string {
  return text
    .replace(ESCAPES, '')
    // Programs that redraw a line return to its start; here each version has its own.
    .replace(/\r\n?/g, '\n')
    .replace(CONTROLS, named)
    .replace(INVISIBLE, named)
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
    .replace(INVISIBLE, named)
    .replace(PILES, (_, shown: string, rest: string) => shown + Array.from(rest, named).join(''))
    .toWellFormed();
}

/** The text on one line, for titles and lists. */
export function oneLine(text: string): string {
  return clean(text.slice(0, 2_000)).replace(/\s+/g, ' ').trim();
}

/** A path or a command on one line. No path is longer than 4,096 bytes. */
export function exactLine(text: string): string {
  return exact(text.slice(0, 4_100)).replace(/\s+/g, ' ').trim();
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
