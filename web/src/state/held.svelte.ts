/** Questions that somebody is answering. They stay on the screen when they are closed elsewhere, so that nobody's words go astray. */

import { SvelteMap } from 'svelte/reactivity';
import { closedBecause } from '../lib/answers';
import { replyText } from '../lib/entries';
import { fields } from '../lib/envelope';
import type { QuestionLine } from '../lib/types';
import { pool } from './pool.svelte';

const held = new SvelteMap<string, QuestionLine>();

/** What was answered to them elsewhere. */
const answers = new SvelteMap<string, string>();

pool.listen((event) => {
  const key = `${event.goal}:${String(event.fields.question)}`;
  if (event.kind === 'answered' && held.has(key)) answers.set(key, replyText(fields(event.fields.reply)));
}, () => undefined);

const keyOf = (question: QuestionLine): string => `${question.goal}:${question.id}`;

export function hold(question: QuestionLine): void {
  if (!held.has(keyOf(question))) held.set(keyOf(question), question);
}

export function release(question: QuestionLine): void {
  held.delete(keyOf(question));
  answers.delete(keyOf(question));
}

/** Whether it can be answered no more. */
export function isClosed(question: QuestionLine): boolean {
  return !pool.questions.some((one) => keyOf(one) === keyOf(question));
}

/** Why it cannot, in a sentence. */
export function whyClosed(question: QuestionLine): string {
  return closedBecause(answers.get(keyOf(question)), pool.goals.get(question.goal));
}

/** All open questions, and those that are held. */
export function shownQuestions(): QuestionLine[] {
  return [...pool.questions, ...[...held.values()].filter(isClosed)];
}
