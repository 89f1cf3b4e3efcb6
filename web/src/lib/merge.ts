/** Requests to merge: first for a plan, then to do what the plan says. */

import type { MergeReport, NewMerge } from './types';

export type MergeStyle = 'default' | 'squash' | 'no_ff';

export interface MergeChoice {
  /** The branch; empty for the one that is checked out. */
  into: string;
  style: MergeStyle;
  /** Empty for the server's own. */
  message: string;
  unproven: boolean;
}

/** Asks what a merge would change. */
export function planRequest({ into, style, message, unproven }: MergeChoice): NewMerge {
  const request: NewMerge = { dry_run: true, squash: style === 'squash', no_ff: style === 'no_ff', unproven };
  if (into.trim() !== '') request.into = into.trim();
  if (message.trim() !== '') request.message = message;
  return request;
}

/** Merges the work of the plan and nothing newer, into the branch of the plan, even if another one is checked out by now. */
export function mergeRequest(choice: MergeChoice, plan: Pick<MergeReport, 'into' | 'candidate'>): NewMerge {
  return { ...planRequest(choice), dry_run: false, into: plan.into, candidate: plan.candidate };
}

export interface Conflict {
  into: string;
  /** The paths as the message lists them. */
  paths: string;
}

/** The conflict that a message of the server reports. */
export function conflictOf(message: string): Conflict | undefined {
  const [, into, paths] = /^the work and `(.+?)` changed the same places in (.+)$/s.exec(message) ?? [];
  return into === undefined || paths === undefined ? undefined : { into, paths };
}

/** The commit as people write it. */
const short = (candidate: string): string => candidate.slice(0, 12);

/** The prompt that the command line suggests, too. */
export function resolvePrompt(candidate: string): string {
  return `merge ${short(candidate)} and resolve the conflicts`;
}

export function resolveCommand(candidate: string, into: string): string {
  return `git switch ${into} && git merge ${short(candidate)}`;
}
