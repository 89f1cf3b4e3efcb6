/** Turns choices into the text that the server reads as an answer. */

import { statusOf } from './status';
import { oneLine } from './text';

export interface Chosen {
  /** Places of the options, counted from 0. */
  options: readonly number[];
  /** The person's own words. */
  own: string;
}

export interface Asked {
  options: readonly { label: string }[];
}

/** What was chosen before, from a stored draft. Whatever does not fit the parts is left out. */
export function chosenOf(parts: readonly Asked[], draft: unknown): Chosen[] {
  const drafts: unknown[] = Array.isArray(draft) ? draft : [];
  return parts.map((part, index) => {
    const { options, own } = (drafts[index] ?? {}) as { options?: unknown; own?: unknown };
    const places: unknown[] = Array.isArray(options) ? options : [];
    const isOption = (place: unknown): place is number => typeof place === 'number' && part.options[place] !== undefined;
    return { options: places.filter(isOption), own: typeof own === 'string' ? own : '' };
  });
}

/** One answer per part, one per line; undefined while a part has none. */
export function answerText(parts: readonly Asked[], chosen: readonly Chosen[]): string | undefined {
  const answers = parts.map((part, index) => answerOf(part, chosen[index]));
  return answers.every((answer) => answer !== '') ? answers.join('\n') : undefined;
}

/** Numbers name options safely, whatever their labels hold. Beside words of one's own, they would be read as words. */
function answerOf(part: Asked, chosen: Chosen | undefined): string {
  const own = (chosen?.own ?? '').replace(/\s*\n\s*/g, ' ').trim();
  const options = chosen?.options ?? [];
  if (own === '') return options.map((place) => String(place + 1)).join(', ');
  return [...options.map((place) => part.options[place]?.label ?? ''), own].join(', ');
}

/** Why a question cannot be answered, from the answer that somebody else gave, if any. */
export function closedBecause(answer: string | undefined, goal: { phase: string } | undefined): string {
  if (answer !== undefined) return `Answered elsewhere: ${oneLine(answer).replace(/\.$/, '')}.`;
  if (goal !== undefined && statusOf(goal).group === 'ended') return 'The goal has ended.';
  return 'The agent is no longer waiting for an answer.';
}
