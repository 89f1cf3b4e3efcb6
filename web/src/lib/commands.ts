/** Finds commands by what somebody types. */

export interface Command {
  title: string;
  /** Further words to find it by, and what is shown beside it. */
  hint: string;
  run: () => void;
}

/** Commands that have all the words, those whose title begins with them first. */
export function findCommands<T extends Pick<Command, 'title' | 'hint'>>(commands: readonly T[], typed: string, most: number): T[] {
  const parts = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const whole = parts.join(' ');
  const found = commands.filter((command) => {
    const text = `${command.title} ${command.hint}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
  const rank = (command: T): number => (whole !== '' && command.title.toLowerCase().startsWith(whole) ? 0 : 1);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, most);
}
