/** Counts what needs a person. A goal counts once, however much it asks. */

type Item =
  | { kind: 'question'; question: { goal: string }; closed: boolean }
  | { kind: 'goal'; goal: { id: string }; read: boolean }
  | { kind: 'account' | 'problem' };

export function countOf(items: readonly Item[]): { goals: ReadonlySet<string>; others: number } {
  const goals = new Set<string>();
  let others = 0;
  for (const item of items) {
    if (item.kind === 'question') {
      if (!item.closed) goals.add(item.question.goal);
    } else if (item.kind === 'goal') {
      if (!item.read) goals.add(item.goal.id);
    } else others++;
  }
  return { goals, others };
}
