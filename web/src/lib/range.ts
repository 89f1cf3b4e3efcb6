import type { Envelope } from './envelope';

/** How many entries are kept. What is further away is loaded again when somebody scrolls there. */
const MOST = 20_000;

/**
 * A part of a goal's log without gaps, in the order of the server's numbers. It grows at both ends.
 */
export class LogRange {
  #events: Envelope[] = [];
  /** Whether it reaches the newest entry that is known. */
  #following = true;

  get events(): readonly Envelope[] {
    return this.#events;
  }

  get first(): number {
    return this.#events[0]?.seq ?? 0;
  }

  get last(): number {
    return this.#events.at(-1)?.seq ?? 0;
  }

  /** Whether there is nothing before it. */
  get reachesStart(): boolean {
    return this.first <= 1;
  }

  get following(): boolean {
    return this.#following;
  }

  /** Begins anew with a page from anywhere in the log. */
  reset(page: readonly Envelope[], following: boolean): void {
    this.#events = inOrder(page);
    this.#following = following;
  }

  /** Adds a page that was read after an entry. Returns whether it fits: the range may be in another part of the log by now. */
  append(page: readonly Envelope[], reachesEnd: boolean, after: number): boolean {
    const last = this.last;
    if (after > last || after < this.first - 1) return false;
    this.#events = this.#events.concat(inOrder(page).filter((event) => event.seq > last));
    this.#following = reachesEnd;
    if (this.#events.length > MOST) this.#events = this.#events.slice(-MOST);
    return true;
  }

  /** Adds the page before an entry, unless another one is the first by now. */
  prepend(page: readonly Envelope[], before: number): void {
    const first = this.first;
    if (before !== first) return;
    this.#events = inOrder(page)
      .filter((event) => event.seq < first)
      .concat(this.#events);
    if (this.#events.length > MOST) {
      this.#events = this.#events.slice(0, MOST);
      this.#following = false;
    }
  }

  /**
   * Takes an entry that the server sent. `gap` means that entries before it are missing: the caller reads them after `last`, and gets
   * this one with them.
   */
  accept(event: Envelope): 'taken' | 'known' | 'gap' | 'elsewhere' {
    if (event.seq <= this.last) return 'known';
    if (!this.#following) return 'elsewhere';
    if (event.seq > this.last + 1) return 'gap';
    this.#events.push(event);
    return 'taken';
  }
}

function inOrder(page: readonly Envelope[]): Envelope[] {
  const sorted = [...page].sort((a, b) => a.seq - b.seq);
  return sorted.filter((event, index) => event.seq !== sorted[index - 1]?.seq);
}
