import { ApiError } from './client';

/** When something is read again that the server could not give. */
const RETRY = 5_000;

/**
 * Reads something again after changes: soon after the first one, and never twice at the same time. Changes that come meanwhile cause one
 * more reading. What the server could not give is read again later.
 */
export class Refresh {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = Infinity;
  #running: Promise<void> | undefined;
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
    this.#timer = setTimeout(() => void this.now().catch(() => undefined), milliseconds);
  }

  /** Reads at once. Fails if that fails. */
  now(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    clearTimeout(this.#timer);
    this.#due = Infinity;
    this.#running = this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    let wait: number | undefined;
    try {
      await this.read();
    } catch (error) {
      // When the connection is lost, the feed shows that, and everything is read again when it is back.
      if (error instanceof ApiError && (error.status >= 500 || error.status === 429)) wait = RETRY;
      throw error;
    } finally {
      this.#running = undefined;
      if (this.#again) wait = wait ?? 300;
      this.#again = false;
      if (wait !== undefined) this.within(wait);
    }
  }

  /** Reads nothing any more. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }
}
