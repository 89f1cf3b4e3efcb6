/** What is left of a text after a part of it was sent: a person may have gone on typing meanwhile. */
export function unsent(words: string, sent: string): string {
  return words.startsWith(sent) ? words.slice(sent.length).trimStart() : words;
}
