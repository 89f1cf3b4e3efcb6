/**
 * The events of all goals. Browsers allow six connections to a host, so all tabs share one stream: the tab that holds a Web Lock reads
 * it and passes everything on over a BroadcastChannel. When that tab closes, the browser gives the lock to another one, which resumes
 * after the last event that it has seen. A SharedWorker would do the same, but Chrome on Android has none.
 */

import { ApiError, send } from './client';
import { SseParser, type ServerEvent } from './sse';

export type FeedState = 'connecting' | 'open' | 'lost';

export interface Listener {
  event(data: string): void;
  state(state: FeedState): void;
  /** A goal was removed, as the server writes it. */
  removed(data: string): void;
  /** Events may have been missed, or reads may have failed: everything must be read again. */
  resync(): void;
  /** The server has another state directory than before, so nothing that is known holds any more. */
  restart(): void;
}

/** The parts of the browser that tests replace. */
export interface Surroundings {
  open(last: string | undefined, signal: AbortSignal): AsyncIterable<ServerEvent | 'opened'>;
  channel: Pick<BroadcastChannel, 'postMessage' | 'onmessage' | 'close'>;
  /** Runs the function while no other tab does; resolves when it has returned. */
  lead(run: () => Promise<void>, signal: AbortSignal): Promise<void>;
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
  /** Calls back whenever somebody looks at the tab again. */
  onShown(shown: () => void, signal: AbortSignal): void;
}

type Message =
  | { kind: 'event'; id: number; data: string }
  | { kind: 'removed'; data: string }
  | { kind: 'restart'; id: number }
  | { kind: 'state'; state: FeedState }
  | { kind: 'resync' }
  | { kind: 'hello' };

const LONGEST_WAIT = 10_000;

/** How long the tab that reads the stream may take to reply. Browsers suspend tabs in the background. */
const LONGEST_REPLY = 2_000;

export class Feed {
  #last: number | undefined;
  #state: FeedState = 'connecting';
  #leads = false;
  #wasOpen = false;
  #reply: ReturnType<typeof setTimeout> | undefined;
  readonly #stop = new AbortController();
  readonly #with: Surroundings;
  readonly #listener: Listener;

  constructor(surroundings: Surroundings, listener: Listener) {
    this.#with = surroundings;
    this.#listener = listener;
    surroundings.channel.onmessage = (message: MessageEvent): void => this.#hear(message.data as Message);
    this.#post({ kind: 'hello' });
    surroundings.onShown(() => this.#ask(), this.#stop.signal);
    void surroundings.lead(() => this.#lead(), this.#stop.signal).catch(() => undefined);
  }

  /** Asks the tab that reads the stream whether it still does. */
  #ask(): void {
    if (this.#leads) return;
    clearTimeout(this.#reply);
    this.#reply = setTimeout(() => { if (!this.#leads) this.#set('lost'); }, LONGEST_REPLY);
    this.#post({ kind: 'hello' });
  }

  stop(): void {
    clearTimeout(this.#reply);
    this.#stop.abort();
    this.#with.channel.close();
  }

  async #lead(): Promise<void> {
    this.#leads = true;
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#follow(() => (failures = 0));
      } catch (error) {
        // The session has ended; the sign-in view takes over.
        if (error instanceof ApiError && error.status === 401) return;
      }
      if (signal.aborted) return;
      this.#publish('lost');
      const longest = Math.min(LONGEST_WAIT, 500 * 2 ** failures++);
      await this.#with.wait(longest * (0.5 + Math.random() / 2), signal);
    }
  }

  async #follow(opened: () => void): Promise<void> {
    const last = this.#last;
    for await (const event of this.#with.open(last?.toString(), this.#stop.signal)) {
      if (event === 'opened') {
        opened();
        // Without a place to resume after, the stream begins now, and what happened meanwhile is not in it.
        // After a lost connection, everything is read again in any case.
        if (last === undefined && this.#wasOpen && this.#state !== 'lost') this.#resync();
        this.#wasOpen = true;
        this.#publish('open');
      } else if (event.name === 'removed') {
        this.#post({ kind: 'removed', data: event.data });
        this.#listener.removed(event.data);
      } else if (event.id !== undefined) {
        const id = Number(event.id);
        if (event.name === 'restart') {
          this.#post({ kind: 'restart', id });
          this.#restart(id);
          continue;
        }
        this.#post({ kind: 'event', id, data: event.data });
        this.#take(id, event.data);
      }
    }
  }

  #hear(message: Message): void {
    if (message.kind === 'event') this.#take(message.id, message.data);
    else if (message.kind === 'removed') this.#listener.removed(message.data);
    else if (message.kind === 'restart') this.#restart(message.id);
    else if (message.kind === 'resync') this.#listener.resync();
    else if (message.kind === 'state') {
      clearTimeout(this.#reply);
      this.#set(message.state);
    } else if (this.#leads) this.#post({ kind: 'state', state: this.#state });
  }

  /** Every event counts once, whichever tab read it. */
  #take(id: number, data: string): void {
    if (this.#last !== undefined && id <= this.#last) return;
    this.#last = id;
    this.#listener.event(data);
  }

  /** The log of the server ends before the last event that was seen. */
  #restart(id: number): void {
    this.#last = id;
    this.#listener.restart();
  }

  #resync(): void {
    this.#post({ kind: 'resync' });
    this.#listener.resync();
  }

  #publish(state: FeedState): void {
    this.#post({ kind: 'state', state });
    this.#set(state);
  }

  #set(state: FeedState): void {
    if (state === 'open') this.#wasOpen = true;
    if (this.#state === state) return;
    const isBack = this.#state === 'lost' && state === 'open';
    this.#state = state;
    this.#listener.state(state);
    // Events continue where they stopped, but reads that failed meanwhile are not repeated by themselves.
    if (isBack) this.#listener.resync();
  }

  #post(message: Message): void {
    if (!this.#stop.signal.aborted) this.#with.channel.postMessage(message);
  }
}

/** How long a stream may be silent. The server shows every 15 seconds that it is alive. */
const SILENCE = 40_000;

/** Reads a stream of events until it ends. Yields `opened` once the server has accepted the request. */
export async function* readStream(
  path: string,
  last: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent | 'opened'> {
  const cut = new AbortController();
  const abort = (): void => cut.abort();
  signal.addEventListener('abort', abort);
  // A network that went away may never end the stream. A server on this machine is simply asked again.
  addEventListener('offline', abort);
  let timer = setTimeout(abort, SILENCE);
  try {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (last !== undefined) headers['Last-Event-ID'] = last;
    const response = await send('GET', path, { headers, signal: cut.signal });
    yield 'opened';
    const reader = response.body?.getReader();
    const parser = new SseParser();
    const decoder = new TextDecoder();
    for (;;) {
      const piece = await reader?.read();
      if (!piece || piece.done) return;
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE);
      yield* parser.push(decoder.decode(piece.value, { stream: true }));
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    removeEventListener('offline', abort);
    cut.abort();
  }
}

/** Waits, but not longer than until the network is back or the page is looked at again. */
export function waitOrWake(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      removeEventListener('online', end);
      removeEventListener('towline-reconnect', end);
      document.removeEventListener('visibilitychange', end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener('online', end);
    addEventListener('towline-reconnect', end);
    document.addEventListener('visibilitychange', end);
    signal.addEventListener('abort', end);
  });
}

/** What a browser has. Pages that came over plain HTTP from another machine have no locks; there, each tab has a stream of its own. */
export function browserSurroundings(): Surroundings {
  const locks = navigator.locks as LockManager | undefined;
  const alone = { postMessage: () => undefined, onmessage: null, close: () => undefined };
  return {
    open: (last, signal) => readStream('/events', last, signal),
    channel: locks === undefined ? alone : new BroadcastChannel('towline-events'),
    lead: (run, signal) => (locks === undefined ? run() : locks.request('towline-events', { signal }, run).then(() => undefined)),
    wait: waitOrWake,
    onShown: (shown, signal) => document.addEventListener('visibilitychange', () => { if (!document.hidden) shown(); }, { signal }),
  };
}
