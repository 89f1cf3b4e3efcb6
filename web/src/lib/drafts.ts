/** What is left of a text after a part of it was sent: a person may have gone on typing meanwhile. */
export function unsent(words: string, sent: string): string {
  return words.startsWith(sent) ? words.slice(sent.length).trimStart() : words;
}

/** What to store as the draft after a text was sent, if that was the draft: another tab may have stored one of its own. */
export function draftAfter(stored: string | undefined, words: string, sent: string): string | undefined {
  if (stored !== undefined && stored !== words && stored !== sent) return stored;
  return unsent(words, sent) || undefined;
}

/** What another tab still has to send once the draft is gone: everything but the text that was sent, which was the draft before. */
export function keptDraft(words: string, before: string | undefined): string {
  return words === before ? '' : words;
}
