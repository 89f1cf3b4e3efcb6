/** Counts requests, so that the reply to an earlier one cannot replace the reply to a later one. */
export class Latest {
  #count = 0;

  /** Sends a request. Calls back with its outcome unless another request has been sent meanwhile. */
  async send<T>(request: () => Promise<T>, reply: (value: T) => void, fail: (error: unknown) => void): Promise<void> {
    const count = ++this.#count;
    try {
      const value = await request();
      if (count === this.#count) reply(value);
    } catch (error) {
      if (count === this.#count) fail(error);
    }
  }
}
