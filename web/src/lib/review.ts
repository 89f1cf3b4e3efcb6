/** Comments on a diff, and the one message that they become. */

import type { DiffFile, DiffLine } from './diff';

export type Side = 'before' | 'after';

export interface Comment {
  id: string;
  path: string;
  side: Side;
  from: number;
  to: number;
  /** The lines as they were when the comment was written. */
  quote: readonly string[];
  text: string;
}

/** Where a line is, by the side that has it. A line that is there on both sides is named by the new one. */
export function placeOf(line: DiffLine): { side: Side; number: number } | undefined {
  if (line.after !== undefined) return { side: 'after', number: line.after };
  return line.before === undefined ? undefined : { side: 'before', number: line.before };
}

/** All lines of a file that can be commented on, in order. */
export function linesOf(file: DiffFile): DiffLine[] {
  return file.hunks.flatMap((hunk) => hunk.lines).filter((line) => line.kind !== 'note');
}

/** A comment on the lines from one place of the list to another, in either order. It belongs to the side of its last line. */
export function commentOn(file: DiffFile, one: number, other: number, text: string, id: string): Comment | undefined {
  const lines = linesOf(file).slice(Math.min(one, other), Math.max(one, other) + 1);
  const last = lines.at(-1);
  const place = last && placeOf(last);
  if (place === undefined) return undefined;
  const numbers = lines.flatMap((line) => line[place.side] ?? []);
  return {
    id,
    path: file.path,
    side: place.side,
    from: Math.min(...numbers),
    to: place.number,
    quote: lines.map((line) => `${line.kind === 'added' ? '+' : line.kind === 'removed' ? '-' : ' '}${line.text}`),
    text,
  };
}

/** The place in the list of the line that a comment is under; undefined once the file has changed there. */
export function lineOfComment(file: DiffFile, comment: Comment): number | undefined {
  const lines = linesOf(file);
  const at = lines.findIndex((line) => {
    const place = placeOf(line);
    return place?.side === comment.side && place.number === comment.to;
  });
  return at >= 0 && comment.quote.at(-1)?.slice(1) === lines[at]?.text ? at : undefined;
}

const LONGEST_QUOTE = 12;
const LONGEST_LINE = 300;

/** One message with all comments, in the order of files and lines. */
export function messageOfComments(comments: readonly Comment[], heading = 'Comments on your change:'): string {
  const sorted = [...comments].sort((a, b) => a.path.localeCompare(b.path) || a.to - b.to);
  const parts = sorted.map((comment) => {
    const lines = comment.from === comment.to ? `${comment.to}` : `${comment.from}-${comment.to}`;
    const where = `${comment.path}:${lines}${comment.side === 'before' ? ' (removed)' : ''}`;
    const quote = comment.quote.slice(0, LONGEST_QUOTE).map((line) => `> ${line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}`);
    if (comment.quote.length > LONGEST_QUOTE) quote.push(`> … ${comment.quote.length - LONGEST_QUOTE} more lines`);
    return [where, ...quote, comment.text.trim()].join('\n');
  });
  return [heading, ...parts].join('\n\n');
}

/** The prompt of a goal that follows up on another one: after what its draft has already. The first line becomes the goal's title. */
export function followUpPrompt(draft: string, comments: readonly Comment[], id: string, title: string): string {
  if (draft.trim() === '') return messageOfComments(comments, `Follow up on ${id}, ${title}, with these comments on its change:`);
  return `${draft.trimEnd()}\n\n${messageOfComments(comments, `More comments on the change of ${id}:`)}`;
}

/** The comments that are left after some were sent: others may have been written or changed meanwhile. */
export function withoutSent(comments: readonly Comment[], sent: readonly Comment[]): Comment[] {
  return comments.filter((one) => !sent.includes(one));
}

/** Whether a file was ticked, and is another one by now. */
export function isOutdated(file: DiffFile, ticks: Readonly<Record<string, string>>): boolean {
  const ticked = ticks[file.path];
  return ticked !== undefined && ticked !== file.digest;
}

/** Ticks of files that are still as they were when they were ticked. */
export function validTicks(files: readonly DiffFile[], ticks: Readonly<Record<string, string>>): Set<string> {
  return new Set(files.filter((file) => ticks[file.path] === file.digest).map((file) => file.path));
}
