/** Reads what is on the screen, few at a time, and each again only when its state is another one. */
export class LazyReads {
  /** The state of each that was read last. */
  #read = new Map<string, string>();
  #waiting = new Map<string, { state: string; read: () => Promise<void> }>();
  #reading = 0;
  readonly #atOnce: number;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Reads it, unless that is known in this state. What could not be read is read when it is wanted once more. */
  want(id: string, state: string, read: () => Promise<void>): void {
    if (this.#read.get(id) === state) return;
    this.#read.set(id, state);
    this.#waiting.set(id, { state, read });
    this.#next();
  }

  /** Takes note that something else has read it. */
  known(id: string, state: string): void {
    this.#read.set(id, state);
    this.#waiting.delete(id);
  }

  #next(): void {
    const next = this.#waiting.entries().next().value;
    if (next === undefined || this.#reading >= this.#atOnce) return;
    const [id, { state, read }] = next;
    this.#waiting.delete(id);
    this.#reading++;
    void read()
      .catch(() => { if (this.#read.get(id) === state) this.#read.delete(id); })
      .finally(() => {
        this.#reading--;
        this.#next();
      });
  }
}
