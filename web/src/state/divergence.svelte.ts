/** Work beside the branches that would get it: read for what is on the screen, few at a time, and again after what may have changed it. */

import { SvelteMap } from 'svelte/reactivity';
import { api } from '../lib/client';
import { divergenceOf, hasWorkToMerge, type Compared, type Divergence } from '../lib/divergence';
import { LazyReads } from '../lib/lazy';
import type { DivergenceReport } from '../lib/types';
import { pool } from './pool.svelte';

/** How many are read at the same time: each has the server start git. */
const AT_ONCE = 2;

class Divergences {
  /** Grows when branches may have moved, so that what is on the screen is read again. */
  round = $state(0);

  #reports = new SvelteMap<string, DivergenceReport>();
  #reads = new LazyReads(AT_ONCE);

  /** Follows what moves branches: merges, and whatever the user did while the page was not looked at. */
  start(): () => void {
    const moved = (): void => { this.round++; };
    const seen = (): void => { if (!document.hidden) moved(); };
    const stop = pool.listen((event) => { if (event.kind === 'merged') moved(); }, moved);
    document.addEventListener('visibilitychange', seen);
    return () => {
      stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }

  of(goal: Compared): Divergence | undefined {
    const report = hasWorkToMerge(goal) ? this.#reports.get(goal.id) : undefined;
    return report && divergenceOf(report);
  }

  /** Reads it, unless that is known of the goal as it is now. */
  want(goal: Compared): void {
    if (!hasWorkToMerge(goal)) return;
    // What fails is not worth a message: the merge itself reports what is wrong.
    this.#reads.want(goal.id, `${this.round} ${goal.phase} ${goal.attempts}`, async () => {
      this.#reports.set(goal.id, await api.divergence(goal.id));
    });
  }
}

export const divergences = new Divergences();

/** Calls back once the element comes on the screen. */
export function whenSeen(node: HTMLElement, seen: () => void): { destroy(): void } {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    seen();
  });
  observer.observe(node);
  return { destroy: () => observer.disconnect() };
}
