/**
 * A command or the input of a tool, made short without hiding its end: what comes last is what runs last. Long runs of blanks become a
 * count, so that nothing is pushed out of sight.
 */

import { exact, UNSEEN_RUN } from './text';

export type Segment =
  | { kind: 'text'; text: string }
  /** Something that is not shown itself, in words. */
  | { kind: 'folded'; text: string };

export interface Folded {
  segments: Segment[];
  /** How many characters in the middle are not shown. */
  left: number;
  /** How many lines they are. */
  lines: number;
}

/** Lines and characters that are shown of the beginning, and of the end. */
const HEAD = { lines: 30, characters: 3_000 };
const TAIL = { lines: 15, characters: 1_500 };

/** Lines without anything to see, blanks within a line, and one unseen character over and over. */
const RUNS = new RegExp(`\\n(?:[^\\S\\n]*\\n){4,}|[^\\S\\n]{24,}|${UNSEEN_RUN}`, 'gu');

/** Shows `more` times as much of the beginning as at first. */
export function fold(text: string, more = 1): Folded {
  const head = cutHead(text, HEAD.lines * more, HEAD.characters * more);
  const tail = cutTail(text, TAIL.lines, TAIL.characters);
  if (head + tail >= text.length) return { segments: segmentsOf(text), left: 0, lines: 0 };
  const middle = text.slice(head, text.length - tail);
  // Blanks alone are no reason to ask for more.
  if (middle.trim() === '') return { segments: segmentsOf(text), left: 0, lines: 0 };
  const lines = middle.split('\n').length;
  return {
    segments: [
      ...segmentsOf(text.slice(0, head)), { kind: 'folded', text: `${middle.length} characters not shown` }, ...segmentsOf(text.slice(text.length - tail)),
    ],
    left: middle.length,
    lines,
  };
}

/** The length of the beginning that is shown. */
function cutHead(text: string, lines: number, characters: number): number {
  let end = 0;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', end);
    if (next < 0 || next >= characters) return Math.min(text.length, characters);
    end = next + 1;
  }
  return end;
}

/** The length of the end that is shown. */
function cutTail(text: string, lines: number, characters: number): number {
  let start = text.length;
  for (let line = 0; line < lines; line++) {
    const before = start === 0 ? -1 : text.lastIndexOf('\n', start - 1);
    if (before < 0 || text.length - before > characters) return Math.min(text.length, characters);
    start = before;
  }
  return text.length - start;
}

function segmentsOf(text: string): Segment[] {
  const segments: Segment[] = [];
  let from = 0;
  const add = (plain: string): void => {
    if (plain !== '') segments.push({ kind: 'text', text: exact(plain) });
  };
  for (const run of text.matchAll(RUNS)) {
    add(text.slice(from, run.index));
    segments.push({ kind: 'folded', text: nameOf(run[0], run[1]) });
    from = run.index + run[0].length;
  }
  add(text.slice(from));
  return segments;
}

function nameOf(run: string, unseen: string | undefined): string {
  if (unseen !== undefined) return `${exact(unseen)} ${Array.from(run).length} times`;
  const lines = run.split('\n').length - 2;
  return lines > 0 ? `${lines} blank lines` : `${run.length} blanks`;
}
