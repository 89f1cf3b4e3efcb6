/** What needs a person: questions until they are answered, and goals that stopped until somebody has seen them. */

import { load, loadJson, onOtherTab, store, storeJson } from '../lib/storage';
import { baseName, sentence, words } from '../lib/format';
import { countOf } from '../lib/needs';
import { reasonOf, STOPPED } from '../lib/status';
import { oneLine } from '../lib/text';
import type { AccountLine, GoalLine, QuestionLine } from '../lib/types';
import { isClosed, shownQuestions } from './held.svelte';
import { pool } from './pool.svelte';

export type InboxItem =
  | { kind: 'question'; key: string; question: QuestionLine; goal: GoalLine | undefined; closed: boolean }
  | { kind: 'goal'; key: string; goal: GoalLine; summary: string; read: boolean }
  | { kind: 'account'; key: string; account: AccountLine }
  | { kind: 'problem'; key: string; text: string };

const KEY = 'read';
const MOST_READ = 5_000;

class Inbox {
  #read = $state.raw<ReadonlySet<string>>(new Set(loadJson<string[]>(KEY, [])));
  /** On the board it is open unless somebody closed it. Elsewhere it covers what one came for, and is closed unless somebody opened it. */
  #onBoard = $state(load('inbox') !== 'closed');
  #elsewhere = $state(false);

  constructor() {
    onOtherTab(KEY, () => {
      this.#read = new Set(loadJson<string[]>(KEY, []));
    });
  }

  isShown(view: string): boolean {
    return view === 'board' ? this.#onBoard : this.#elsewhere;
  }

  show(view: string, isShown: boolean): void {
    this.#elsewhere = isShown;
    if (view !== 'board') return;
    this.#onBoard = isShown;
    store('inbox', isShown ? undefined : 'closed');
  }

  items = $derived.by((): InboxItem[] => [...problems(), ...questions(), ...stopped(this.#read), ...accounts()]);

  #counted = $derived(countOf(this.items));

  /** The goals that still count: reading clears what only has to be seen; a question counts until it is answered. */
  goals = $derived(this.#counted.goals);
  /** Accounts and problems. */
  others = $derived(this.#counted.others);
  /** How many things need a person: the one number that every place shows. */
  count = $derived(this.goals.size + this.others);

  markRead(goal: GoalLine | undefined): void {
    if (goal === undefined) return;
    const key = keyOf(goal);
    if (!needsSeeing(goal) || this.#read.has(key)) return;
    const read = [...this.#read, key].slice(-MOST_READ);
    this.#read = new Set(read);
    storeJson(KEY, read);
  }
}

function needsSeeing(goal: GoalLine): boolean {
  return goal.phase === 'escalated' || STOPPED.includes(goal.phase);
}

/** Another failure of the same goal is another thing to see. */
function keyOf(goal: GoalLine): string {
  return `${goal.id}:${goal.phase}:${goal.attempts}`;
}

function questions(): InboxItem[] {
  const soon = (question: QuestionLine): string => question.deadline ?? '9';
  const sorted = shownQuestions().sort((a, b) => soon(a).localeCompare(soon(b)) || a.asked_at.localeCompare(b.asked_at));
  return sorted.map((question) => ({
    kind: 'question',
    key: `${question.goal}:question:${question.id}`,
    question,
    goal: pool.goals.get(question.goal),
    closed: isClosed(question),
  }));
}

function stopped(read: ReadonlySet<string>): InboxItem[] {
  const goals = [...pool.goals.values()].filter(needsSeeing);
  goals.sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  return goals.map((goal) => ({
    kind: 'goal',
    key: keyOf(goal),
    goal,
    summary: sentence(oneLine(reasonOf(goal) || words(goal.phase))),
    read: read.has(keyOf(goal)),
  }));
}

function accounts(): InboxItem[] {
  const closed = pool.accounts.filter((account) => account.state === 'closed');
  return closed.map((account) => ({ kind: 'account', key: `account:${account.name}`, account }));
}

function problems(): InboxItem[] {
  const text = pool.queue?.problem;
  return text ? [{ kind: 'problem', key: `problem:${text}`, text }] : [];
}

export function projectOf(goal: GoalLine | undefined): string {
  return oneLine(baseName(goal?.repository));
}

export const inbox = new Inbox();
