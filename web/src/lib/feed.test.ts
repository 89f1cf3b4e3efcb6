import { describe, expect, it, vi } from 'vitest';
import { Feed, type FeedState, type Surroundings } from './feed';
import type { ServerEvent } from './sse';

const event = (id: number): ServerEvent => ({ name: 'event', id: String(id), data: String(id) });

/** A browser with several tabs and a server whose streams the test writes. */
class World {
  opened: { last: string | undefined; push(event: ServerEvent): void; end(): void }[] = [];
  #tabs: { onmessage: ((message: MessageEvent) => void) | null; open: boolean }[] = [];
  /** Whether tabs in the background are suspended, so that they hear nothing. */
  suspended = false;
  #queue: (() => void)[] = [];
  #locked = false;

  tab(): { seen: string[]; removed: string[]; states: FeedState[]; resyncs: number; restarts: number; feed: Feed; show(): void } {
    const tab = {
      seen: [] as string[], removed: [] as string[], states: [] as FeedState[], resyncs: 0, restarts: 0, show: () => undefined as void,
    };
    const self = { onmessage: null as ((message: MessageEvent) => void) | null, open: true };
    this.#tabs.push(self);
    const world = this;
    const surroundings: Surroundings = {
      open: (last, signal) => world.#stream(last, signal),
      channel: {
        get onmessage() { return self.onmessage; },
        set onmessage(given) { self.onmessage = given as typeof self.onmessage; },
        postMessage: (data: unknown) => {
          for (const other of world.#tabs) if (other !== self && other.open && !world.suspended) other.onmessage?.({ data } as MessageEvent);
        },
        close: () => { self.open = false; },
      },
      lead: (run, signal) => world.#lead(run, signal),
      wait: () => Promise.resolve(),
      onShown: (shown) => { tab.show = shown; },
    };
    const feed = new Feed(surroundings, {
      event: (data) => tab.seen.push(data),
      state: (state) => tab.states.push(state),
      removed: (data) => tab.removed.push(data),
      resync: () => tab.resyncs++,
      restart: () => tab.restarts++,
    });
    return Object.assign(tab, { feed });
  }

  async #lead(run: () => Promise<void>, signal: AbortSignal): Promise<void> {
    if (this.#locked) await new Promise<void>((resolve) => this.#queue.push(resolve));
    if (signal.aborted) return this.#queue.shift()?.();
    this.#locked = true;
    await run();
    this.#locked = false;
    this.#queue.shift()?.();
  }

  async *#stream(last: string | undefined, signal: AbortSignal): AsyncGenerator<ServerEvent | 'opened'> {
    const waiting: (ServerEvent | 'end')[] = [];
    let wake = (): void => undefined;
    const give = (one: ServerEvent | 'end'): void => { waiting.push(one); wake(); };
    this.opened.push({ last, push: give, end: () => give('end') });
    signal.addEventListener('abort', () => give('end'));
    yield 'opened';
    for (;;) {
      const next = waiting.shift();
      if (next === 'end') return;
      if (next) yield next;
      else await new Promise<void>((resolve) => { wake = resolve; });
    }
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe('the events of all goals', () => {
  it('come over one connection to all tabs, each once', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.push(event(1));
    world.opened[0]?.push(event(2));
    await settle();
    expect(world.opened.length).toBe(1);
    expect([one.seen, two.seen]).toEqual([['1', '2'], ['1', '2']]);
    one.feed.stop();
    two.feed.stop();
  });

  it('are not claimed to come when the tab that reads them is suspended', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    vi.useFakeTimers();
    two.show();
    vi.advanceTimersByTime(10_000);
    expect(two.states).toEqual(['open']);
    world.suspended = true;
    two.show();
    one.show();
    vi.advanceTimersByTime(10_000);
    expect([one.states, two.states]).toEqual([['open'], ['open', 'lost']]);
    world.suspended = false;
    two.show();
    expect([two.states.at(-1), two.resyncs]).toEqual(['open', 1]);
    vi.useRealTimers();
    one.feed.stop();
    two.feed.stop();
  });

  it('resume after the last one, without a gap or a double', async () => {
    const world = new World();
    const tab = world.tab();
    await settle();
    world.opened[0]?.push(event(7));
    await settle();
    world.opened[0]?.end();
    await settle();
    expect(world.opened[1]?.last).toBe('7');
    world.opened[1]?.push(event(7));
    world.opened[1]?.push(event(8));
    await settle();
    expect(tab.seen).toEqual(['7', '8']);
    expect(tab.states).toEqual(['open', 'lost', 'open']);
    tab.feed.stop();
  });

  it('are followed by a new read of everything, once in each tab, when the connection is back', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.push(event(7));
    await settle();
    expect([one.resyncs, two.resyncs]).toEqual([0, 0]);
    world.opened[0]?.end();
    await settle();
    expect(world.opened[1]?.last).toBe('7');
    expect([one.resyncs, two.resyncs]).toEqual([1, 1]);
    one.feed.stop();
    two.feed.stop();
  });

  it('are read again from the start when nothing was seen before the connection broke', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.end();
    await settle();
    expect([one.resyncs, two.resyncs]).toEqual([1, 1]);
    one.feed.stop();
    two.feed.stop();
  });

  it('begin again after the place that the server gives when it has lost those that were seen', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.push(event(90));
    await settle();
    world.opened[0]?.end();
    await settle();
    world.opened[1]?.push({ name: 'restart', id: '4', data: '{}' });
    world.opened[1]?.push(event(5));
    await settle();
    expect([one.restarts, two.restarts]).toEqual([1, 1]);
    expect([one.seen, two.seen]).toEqual([['90', '5'], ['90', '5']]);
    world.opened[1]?.end();
    await settle();
    expect(world.opened[2]?.last).toBe('5');
    one.feed.stop();
    two.feed.stop();
  });

  it('come with goals that were removed, which have no place', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.push({ name: 'removed', id: undefined, data: 'a' });
    await settle();
    expect([one.removed, two.removed, one.seen]).toEqual([['a'], ['a'], []]);
    one.feed.stop();
    two.feed.stop();
  });

  it('go on in another tab when the one that reads them is closed', async () => {
    const world = new World();
    const [one, two] = [world.tab(), world.tab()];
    await settle();
    world.opened[0]?.push(event(3));
    await settle();
    one.feed.stop();
    await settle();
    expect(world.opened.map((opened) => opened.last)).toEqual([undefined, '3']);
    world.opened[1]?.push(event(4));
    await settle();
    expect(two.seen).toEqual(['3', '4']);
    two.feed.stop();
  });

  it('come with the state of the connection, also to a tab that is opened later', async () => {
    const world = new World();
    const one = world.tab();
    await settle();
    const two = world.tab();
    await settle();
    expect(two.states).toEqual(['open']);
    one.feed.stop();
    two.feed.stop();
  });
});
