/**
 * Reads something again after changes: soon after the first one, and never twice at the same time. Changes that come meanwhile cause one
 * more reading.
 */
export class Refresh {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = Infinity;
  #running = false;
  #again = false;
  #ended = false;

  constructor(readonly read: () => Promise<void>) {}

  /** Reads within this many milliseconds. */
  within(milliseconds: number): void {
    if (this.#ended) return;
    if (this.#running) {
      this.#again = true;
      return;
    }
    const due = Date.now() + milliseconds;
    if (due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.now(), milliseconds);
  }

  async now(): Promise<void> {
    if (this.#ended) return;
    if (this.#running) {
      this.#again = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#due = Infinity;
    this.#running = true;
    try {
      await this.read();
    } catch {
      // The feed shows that the connection is lost, and everything is read again when it is back.
    } finally {
      this.#running = false;
      if (this.#again) {
        this.#again = false;
        this.within(300);
      }
    }
  }

  /** Reads nothing any more. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }
}
