/** What this browser remembers. Storage can be full or forbidden; nothing here depends on it. */

const PREFIX = 'towline.';

export function load(key: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether the value is stored. */
export function store(key: string, value: string | undefined): boolean {
  try {
    if (value === undefined || value === '') localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
    return true;
  } catch {
    // What is on the screen stays there.
    return false;
  }
}

export function loadJson<T>(key: string, fallback: T): T {
  try {
    const text = load(key);
    return text === undefined ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function storeJson(key: string, value: unknown): boolean {
  return store(key, JSON.stringify(value));
}

/** Calls back when another tab has changed a value. */
export function onOtherTab(key: string, changed: (value: string | undefined, before: string | undefined) => void, signal?: AbortSignal): void {
  const listen = (event: StorageEvent): void => {
    if (event.key === PREFIX + key) changed(event.newValue ?? undefined, event.oldValue ?? undefined);
  };
  addEventListener('storage', listen, signal === undefined ? {} : { signal });
}
