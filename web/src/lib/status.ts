/**
 * The status of a goal: computed here and nowhere else, so that board, header, inbox and detail never disagree.
 * The words are those of `towline queue`.
 */

import { axisName } from './format';
import { oneLine } from './text';

/** What a goal looks like. Colours never stand alone: the label is always beside them. */
export type Tone = 'needs' | 'busy' | 'wait' | 'good' | 'bad' | 'quiet';

export type Group = 'needs' | 'running' | 'waiting' | 'ended';

export interface Status {
  label: string;
  tone: Tone;
  group: Group;
}

const STATUSES: Readonly<Record<string, Status>> = {
  queued: { label: 'queued', tone: 'wait', group: 'waiting' },
  preparing: { label: 'preparing', tone: 'busy', group: 'running' },
  running: { label: 'running', tone: 'busy', group: 'running' },
  stopping: { label: 'stopping', tone: 'busy', group: 'running' },
  checking: { label: 'checking', tone: 'busy', group: 'running' },
  sleeping: { label: 'sleeping', tone: 'wait', group: 'waiting' },
  limited: { label: 'limited', tone: 'wait', group: 'waiting' },
  paused: { label: 'paused', tone: 'quiet', group: 'waiting' },
  blocked: { label: 'needs an answer', tone: 'needs', group: 'needs' },
  escalated: { label: 'needs you', tone: 'needs', group: 'needs' },
  done: { label: 'done', tone: 'good', group: 'ended' },
  unproven: { label: 'unproven', tone: 'quiet', group: 'ended' },
  failed: { label: 'failed', tone: 'bad', group: 'ended' },
  cancelled: { label: 'cancelled', tone: 'quiet', group: 'ended' },
  unreadable: { label: 'unreadable', tone: 'bad', group: 'ended' },
};

/** The filter for everything that needs a person, whatever its phase. */
export const NEEDS = 'needs';

/** All phases in the order of a goal's life. */
export const PHASES: readonly string[] = Object.keys(STATUSES);

/** The phases of goals that have not ended, as a filter. The server refuses filters with a phase that it does not have. */
export const ACTIVE: readonly string[] = PHASES.filter((phase) => STATUSES[phase]?.group !== 'ended');

/** Phases of goals that have ended and need a person: all of these are read, however many others have ended since. */
export const STOPPED: readonly string[] = ['failed'];

/** Other goals that have ended: the newest are read, and more on demand. */
export const ENDED: readonly string[] = ['done', 'unproven', 'cancelled'];

export const GROUPS: readonly { group: Group; title: string }[] = [
  { group: 'needs', title: 'Needs you' },
  { group: 'running', title: 'Running' },
  { group: 'waiting', title: 'Waiting' },
  { group: 'ended', title: 'Ended' },
];

/** An unknown phase is shown by name, as an error. */
export function statusOf(goal: { phase: string }): Status {
  return STATUSES[goal.phase] ?? { label: goal.phase, tone: 'bad', group: 'waiting' };
}

/** What the verdicts of a goal are worth, and what confined its programs. */
export function trustOf(trust: { level: number; sandbox?: string | null }): string {
  return `level ${trust.level}${trust.sandbox ? `, ${oneLine(trust.sandbox)}` : ', no sandbox'}`;
}

/** What is proven about the files of a planned merge. A goal that ended unproven has no checks. */
export function proofOf(plan: { proven: boolean }, goal: { phase: string }): string {
  if (plan.proven) return 'Checks have passed on exactly these files.';
  return goal.phase === 'unproven' ? 'None: this goal has no checks.' : 'No check has passed on exactly these files; they run before the merge.';
}

/** What a person can do with a goal. The server has the last word. */
export interface Steps {
  tell: boolean;
  pause: boolean;
  resume: boolean;
  cancel: boolean;
  retry: boolean;
  merge: boolean;
}

/** A goal that was retried after a merge may have newer work. */
function isMerged(goal: { candidate?: string | null; merged?: { candidate: string } | null }): boolean {
  if (!goal.merged) return false;
  return !goal.candidate || goal.candidate === goal.merged.candidate;
}

export function stepsOf(goal: { phase: string; candidate?: string | null; merged?: { candidate: string } | null }): Steps {
  const { phase } = goal;
  const { group } = statusOf(goal);
  const isSettled = group === 'ended' || phase === 'escalated' || phase === 'paused';
  return {
    tell: group !== 'ended',
    pause: !isSettled && phase !== 'stopping',
    resume: phase === 'paused',
    cancel: group !== 'ended',
    retry: ['escalated', 'failed', 'cancelled', 'unproven', 'limited', 'sleeping'].includes(phase),
    merge: (phase === 'done' || phase === 'unproven') && !isMerged(goal),
  };
}

/** When the agent gets a message that is sent now. */
export function arrivalOf({ phase }: { phase: string }): string {
  if (phase === 'running' || phase === 'blocked') return 'when its running tool has ended, or its turn';
  return phase === 'checking' ? 'if it continues' : 'when it continues';
}

/** Why a goal is where it is, in one sentence; empty when the label is enough. */
export function reasonOf(goal: {
  phase: string;
  reason?: string | null | undefined;
  hold?: { text: string; reason: string } | null | undefined;
}): string {
  if (goal.phase === 'paused') return goal.reason === 'shutdown' ? 'paused by a shutdown; the server resumes it' : 'paused by you';
  if (goal.phase === 'queued') return goal.hold?.text ?? '';
  if (goal.phase === 'limited') return `the quota is used up${goal.reason ? `; ${goal.reason}` : ''}`;
  const spent = /^budget: (\w+)$/.exec(goal.reason ?? '')?.[1];
  return spent === undefined ? (goal.reason ?? '') : `the budget of ${axisName(spent)} is spent`;
}
