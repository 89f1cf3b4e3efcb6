/**
 * One tab at a time has the second stream, that of the message an agent is writing. Browsers allow six connections to a host, and tabs
 * in windows side by side are all visible.
 */

/** The parts of the browser that tests replace. */
export interface Turns {
  /**
   * Runs the function while no other tab does. With `steal`, the tab that does loses its turn at once. Resolves or fails when the turn is
   * over; the signal ends the wait for it.
   */
  take(run: () => Promise<void>, how: { steal: boolean; signal: AbortSignal }): Promise<unknown>;
  isLookedAt(): boolean;
  /** Resolves when somebody looks at this tab again. */
  lookedAt(signal: AbortSignal): Promise<void>;
}

/** Runs the function whenever it is this tab's turn, until the signal: at once if somebody looks at this tab, else when no other tab does. */
export async function inTurn(turns: Turns, run: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  // A tab that has lost its turn waits until it is looked at once more: two windows would otherwise take it from each other for ever.
  for (let steal = turns.isLookedAt(); !signal.aborted; ) {
    const [turn, wait] = [new AbortController(), new AbortController()];
    const end = (): void => [turn, wait].forEach((one) => one.abort());
    signal.addEventListener('abort', end);
    let isLookedAt = false;
    if (!steal) {
      void turns.lookedAt(wait.signal).then(() => {
        isLookedAt = !wait.signal.aborted;
        wait.abort();
      });
    }
    const mine = (): Promise<void> => {
      wait.abort();
      return run(turn.signal);
    };
    // It fails when another tab takes the turn, or when this one stops waiting for it.
    await turns.take(mine, { steal, signal: wait.signal }).catch(() => undefined);
    end();
    signal.removeEventListener('abort', end);
    steal = isLookedAt;
  }
}

/** Web Locks; without them, each tab has its turn. */
export function browserTurns(name: string): Turns {
  const locks = navigator.locks as LockManager | undefined;
  return {
    take: async (run, { steal, signal }) => (locks === undefined ? run() : locks.request(name, steal ? { steal } : { signal }, run)),
    isLookedAt: () => document.hasFocus(),
    lookedAt: (signal) => new Promise((resolve) => {
      if (signal.aborted) return resolve();
      addEventListener('focus', () => resolve(), { once: true, signal });
      signal.addEventListener('abort', () => resolve(), { once: true });
    }),
  };
}
