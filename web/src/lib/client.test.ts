import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api, ApiError, messageOf, withoutLoss } from './client';

const keys: (string | undefined)[] = [];
/** Statuses of the next replies; 0 loses a reply. */
let replies: number[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  keys.length = 0;
  vi.stubGlobal('fetch', async (_: string, { headers }: { headers: Record<string, string> }) => {
    keys.push(headers['Idempotency-Key']);
    const status = replies.shift() ?? 200;
    if (status === 0) throw new TypeError('lost');
    return new Response('{}', { status });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function outcome(request: Promise<unknown>): Promise<string> {
  const settled = request.then(() => 'sent', () => 'failed');
  await vi.advanceTimersByTimeAsync(1_000);
  return settled;
}

describe('a request that changes something', () => {
  it('keeps its key until there is a reply', async () => {
    replies = [0, 0, 409];
    expect(await outcome(api.tell('g', 'hello'))).toBe('failed');
    expect(await outcome(api.tell('g', 'hello'))).toBe('failed');
    expect(new Set(keys).size).toBe(1);
    expect(await outcome(api.tell('g', 'hello'))).toBe('sent');
    expect(await outcome(api.tell('g', 'hello'))).toBe('sent');
    expect(new Set(keys).size).toBe(3);
  });

  it('has a key of its own when it differs, comes much later, or can be repeated', async () => {
    replies = [0, 0];
    await outcome(api.tell('g', 'one'));
    await outcome(api.tell('g', 'two'));
    await vi.advanceTimersByTimeAsync(600_000);
    await outcome(api.tell('g', 'one'));
    expect(new Set(keys).size).toBe(3);
    replies = [0, 0];
    await outcome(api.pause('g'));
    await outcome(api.pause('g'));
    expect(new Set(keys).size).toBe(5);
  });

  it('reports a session that the server did not end', async () => {
    replies = [503];
    expect(await outcome(api.signOut('s'))).toBe('failed');
  });
});

it('forgets only the failures of a lost connection when it is back', () => {
  expect(withoutLoss(messageOf(new ApiError('The server cannot be reached.', 0, 'Check whether it runs.')))).toBe('');
  expect(withoutLoss('the prompt is empty')).toBe('the prompt is empty');
});
