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

/** What a retry may raise, and the amount that is suggested when it is spent: the same as on the command line. */
export const RAISES = [
  { axis: 'usd', amount: '5' },
  { axis: 'attempts', amount: '5' },
  { axis: 'wall', amount: '1h' },
  { axis: 'tokens', amount: '1000000' },
  { axis: 'turns', amount: '20' },
  { axis: 'errors', amount: '5' },
  { axis: 'denials', amount: '5' },
] as const;

/** The budget that a goal has spent, from the reason why it stopped. */
export function spentBudget(reason: string | null | undefined): (typeof RAISES)[number] | undefined {
  return RAISES.find(({ axis }) => reason === `budget: ${axis}`);
}
