/** Finds goals by the words that somebody types, in any order. */

interface Found {
  id: string;
  title: string;
  prompt?: string | null;
  agent?: string | null;
  repository?: string | null;
}

/** Whether a goal has all the words. */
export function hasWords(goal: Found, typed: string): boolean {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = [goal.title, goal.prompt, goal.id, goal.agent, goal.repository].join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}
