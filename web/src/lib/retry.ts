/** Retries a goal and then sends a message. When only the message failed, the next run sends only the message. */
export class RetryWithMessage<T> {
  #retried: T | undefined;

  get isRetried(): boolean {
    return this.#retried !== undefined;
  }

  async run(retry: () => Promise<T>, tell: (() => Promise<T>) | undefined): Promise<T> {
    this.#retried ??= await retry();
    return tell === undefined ? this.#retried : tell();
  }
}
