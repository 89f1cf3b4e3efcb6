import { untrack } from 'svelte';
import { pool } from './pool.svelte';

/** Calls back whenever the lost connection is back, as long as the component is there. */
export function whenBack(back: () => void): void {
  let seen = untrack(() => pool.returns);
  $effect(() => {
    if (pool.returns === seen) return;
    seen = pool.returns;
    untrack(back);
  });
}
