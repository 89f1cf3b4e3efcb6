/** How long somebody must have paused before a letter is a shortcut. */
export const QUIET_FOR = 1_000;

/**
 * When letters are shortcuts. Whoever types into a field goes on typing for a while after it has gone, whatever took it away; each of
 * these keys makes the wait begin again.
 */
export class Quiet {
  #since = -Infinity;

  /** The field that had the focus is gone. */
  lost(now: number): void {
    this.#since = now;
  }

  /** Takes a key with a character that was pressed outside of all fields, and returns whether it may act. */
  allows(now: number): boolean {
    if (now - this.#since >= QUIET_FOR) return true;
    this.#since = now;
    return false;
  }
}
