/** Keys of the page. Each view adds its own and takes them back when it goes away. */

import { Quiet } from '../lib/quiet';

type Action = () => void;

const actions = new Map<string, Action[]>();

/** What a view can do without a key of its own. */
export const CANCEL = 'action:cancel';
export const RETRY = 'action:retry';

const FIELD = 'input, textarea, select, [contenteditable]';
const quiet = new Quiet();

/** Adds keys. Those of the newest view count. Returns how to remove them. */
export function addKeys(keys: Record<string, Action>): () => void {
  for (const [key, action] of Object.entries(keys)) actions.set(key, [...(actions.get(key) ?? []), action]);
  return () => {
    for (const [key, action] of Object.entries(keys)) actions.set(key, (actions.get(key) ?? []).filter((one) => one !== action));
  };
}

export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const target = event.target as HTMLElement | null;
  const withControl = event.ctrlKey || event.metaKey;
  const name = withControl ? `ctrl+${event.key.toLowerCase()}` : event.key;
  const isTyping = target?.closest(FIELD) != null;
  if (isTyping && name === 'Escape') return target?.blur();
  if (event.altKey || (isTyping && !withControl)) return;
  if (!withControl && event.key.length === 1 && !quiet.allows(performance.now())) return;
  if (document.querySelector('dialog[open]') !== null && name !== 'ctrl+k') return;
  const action = actions.get(name)?.at(-1);
  if (action === undefined) return;
  event.preventDefault();
  action();
}

/** Runs what is behind a key, if the view has it. */
export function runKey(name: string): void {
  actions.get(name)?.at(-1)?.();
}

/** Keeps keys from acting for a while after the field with the focus has gone. Returns how to stop. */
export function watchFields(): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  let field: HTMLElement | undefined;
  const look = (): void => {
    if (field === undefined || (field.isConnected && !field.matches(':disabled'))) return;
    field = undefined;
    quiet.lost(performance.now());
  };
  const removed = new MutationObserver((records) => {
    look();
    if (field === undefined || document.activeElement !== document.body) return;
    // A list that was sorted again has moved the field, which takes the focus from it.
    const moved = records.some((record) => [...record.removedNodes].some((node) => node.contains(field ?? null)));
    if (moved) field.focus({ preventScroll: true });
  });
  removed.observe(document.body, { childList: true, subtree: true });
  addEventListener('focusin', ({ target }) => {
    look();
    // The palette goes away only when somebody has chosen in it.
    field = target instanceof HTMLElement && target.matches(FIELD) && !target.matches('[role="combobox"]') ? target : undefined;
  }, { signal });
  addEventListener('focusout', ({ target }) => {
    // Some browsers report it while the field is being taken away.
    setTimeout(() => {
      look();
      if (field === target && document.activeElement !== target) field = undefined;
    });
  }, { signal });
  signal.addEventListener('abort', () => removed.disconnect());
  return () => stop.abort();
}

/** Moves the focus among the rows that can be chosen. */
export function moveFocus(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')].filter((row) => row.offsetParent !== null);
  const active = document.activeElement;
  const at = rows.findIndex((row) => row === active || row.contains(active));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** Puts the cursor into the first field for answers that is on the page. */
export function focusFirst(selector: string): boolean {
  const found = [...document.querySelectorAll<HTMLElement>(selector)].find((one) => one.offsetParent !== null);
  found?.focus();
  found?.scrollIntoView({ block: 'center' });
  return found !== undefined;
}
