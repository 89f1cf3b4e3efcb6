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
