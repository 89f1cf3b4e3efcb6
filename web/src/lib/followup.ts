/** What a goal that continues another one begins with. */

import { fields, list, text } from './envelope';
import type { GoalReport } from './types';

type Before = Pick<GoalReport, 'agent' | 'attempts' | 'metadata'>;

/** What this page stores with a goal that it creates: the server reports the names of checks and not their commands. */
export function metadataOf(checks: readonly string[], agents: readonly string[]): NonNullable<GoalReport['metadata']> {
  return { page: { checks: [...checks], agents: [...agents] } };
}

export interface Inherited {
  checks: string[];
  agents: string[];
  /** Names of checks whose commands are not known. */
  checkNames: string[];
}

/** The goal's own checks and agents. One that was not created here has its agent, and the names of its checks. */
export function inheritedOf({ agent, attempts, metadata }: Before): Inherited {
  const stored = fields(fields(metadata).page);
  const texts = (value: unknown): string[] => list(value).map(text).filter(Boolean);
  const [checks, agents] = [texts(stored.checks), texts(stored.agents)];
  const verdict = attempts.findLast((attempt) => attempt.verdict)?.verdict;
  return {
    checks,
    agents: agents.length > 0 ? agents : agent ? [agent] : [],
    checkNames: checks.length > 0 ? [] : (verdict?.checks.map((check) => check.name) ?? []),
  };
}

/** A draft with what it lacks: what somebody has chosen in it stays. */
export function withInherited<T extends { checks?: string[]; agents?: string[] }>(draft: T, inherited: Inherited): T & Inherited {
  const hasChecks = draft.checks?.some((check) => check.trim() !== '') ?? false;
  return {
    ...draft,
    checks: hasChecks ? (draft.checks ?? []) : inherited.checks.length > 0 ? inherited.checks : [''],
    agents: draft.agents?.length ? draft.agents : inherited.agents,
    checkNames: hasChecks ? [] : inherited.checkNames,
  };
}
