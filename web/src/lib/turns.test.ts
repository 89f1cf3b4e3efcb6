import { describe, expect, it } from 'vitest';
import { inTurn, type Turns } from './turns';

/** Locks as browsers have them, for tabs that share them. */
class Locks {
  #holder: { lose: () => void } | undefined;
  #queue: (() => void)[] = [];

  async take(run: () => Promise<void>, steal: boolean, signal: AbortSignal): Promise<void> {
    if (steal) this.#holder?.lose();
    else if (this.#holder !== undefined) {
      await new Promise<void>((resolve, reject) => {
        this.#queue.push(resolve);
        signal.addEventListener('abort', () => {
          this.#queue = this.#queue.filter((one) => one !== resolve);
          reject(new Error('aborted'));
        });
      });
    }
    const lost = new Promise<never>((_, reject) => { this.#holder = { lose: () => reject(new Error('stolen')) }; });
    const mine = this.#holder;
    try {
      await Promise.race([run(), lost]);
    } finally {
      if (this.#holder === mine) {
        this.#holder = undefined;
        this.#queue.shift()?.();
      }
    }
  }
}

class Tab implements Turns {
  readonly close = new AbortController();
  running = 0;
  #look: (() => void)[] = [];

  constructor(readonly locks: Locks, public looked: boolean) {
    const run = (signal: AbortSignal): Promise<void> => new Promise((resolve) => {
      this.running++;
      signal.addEventListener('abort', () => {
        this.running--;
        resolve();
      });
    });
    void inTurn(this, run, this.close.signal);
  }

  take(run: () => Promise<void>, { steal, signal }: { steal: boolean; signal: AbortSignal }): Promise<unknown> {
    return this.locks.take(run, steal, signal);
  }

  isLookedAt(): boolean {
    return this.looked;
  }

  lookedAt(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#look.push(resolve);
      signal.addEventListener('abort', () => resolve());
    });
  }

  look(): void {
    this.#look.splice(0).forEach((one) => one());
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

describe('the stream of one goal', () => {
  it('is read by one of many tabs: the one that was looked at last', async () => {
    const locks = new Locks();
    const tabs: Tab[] = [];
    for (let n = 0; n < 8; n++) {
      tabs.push(new Tab(locks, true));
      await settled();
      expect(tabs.map((tab) => tab.running)).toEqual(tabs.map((_, place) => (place === n ? 1 : 0)));
    }
    tabs[2]?.look();
    await settled();
    expect(tabs.map((tab) => tab.running)).toEqual([0, 0, 1, 0, 0, 0, 0, 0]);
  });

  it('goes to another visible tab when its tab closes, and ends with the last', async () => {
    const locks = new Locks();
    const first = new Tab(locks, true);
    const second = new Tab(locks, false);
    await settled();
    expect([first.running, second.running]).toEqual([1, 0]);
    first.close.abort();
    await settled();
    expect([first.running, second.running]).toEqual([0, 1]);
    second.close.abort();
    await settled();
    expect(second.running).toBe(0);
  });
});
