import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from './client';
import { Refresh } from './refresh';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('reading again', () => {
  it('happens once for many changes, as early as one of them asks', async () => {
    const read = vi.fn(() => Promise.resolve());
    const refresh = new Refresh(read);
    refresh.within(4_000);
    refresh.within(100);
    refresh.within(4_000);
    await vi.advanceTimersByTimeAsync(100);
    expect(read).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('happens once more for changes that come while it reads', async () => {
    let finish = (): void => undefined;
    const read = vi.fn(() => new Promise<void>((resolve) => { finish = resolve; }));
    const refresh = new Refresh(read);
    void refresh.now();
    refresh.within(0);
    refresh.within(0);
    finish();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('survives a failure, and ends when nobody needs it', async () => {
    const read = vi.fn(() => Promise.reject(new Error('no')));
    const refresh = new Refresh(read);
    await expect(refresh.now()).rejects.toThrow('no');
    refresh.within(10);
    await vi.advanceTimersByTimeAsync(10);
    expect(read).toHaveBeenCalledTimes(2);
    refresh.within(10);
    refresh.end();
    await vi.advanceTimersByTimeAsync(100);
    await refresh.now();
    expect(read).toHaveBeenCalledTimes(2);
  });

  it('fails for everybody who waits for it, and happens again when the server could not reply', async () => {
    let failure: Error | undefined = new ApiError('busy', 503, undefined);
    const read = vi.fn(() => (failure ? Promise.reject(failure) : Promise.resolve()));
    const refresh = new Refresh(read);
    const both = [refresh.now(), refresh.now()];
    expect((await Promise.allSettled(both)).map((one) => one.status)).toEqual(['rejected', 'rejected']);
    expect(read).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(read).toHaveBeenCalledTimes(2);
    failure = undefined;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(read).toHaveBeenCalledTimes(3);
    failure = new ApiError('no server', 0, undefined);
    await expect(refresh.now()).rejects.toThrow('no server');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(read).toHaveBeenCalledTimes(4);
  });
});
