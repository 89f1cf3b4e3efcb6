import { expect, it, vi } from 'vitest';
import { RetryWithMessage, spentBudget } from './retry';

it('retries a goal once, however often the message fails', async () => {
  const steps = new RetryWithMessage<string>();
  const retry = vi.fn(() => Promise.resolve('retried'));
  await expect(steps.run(retry, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(steps.isRetried).toBe(true);
  expect(await steps.run(retry, () => Promise.resolve('told'))).toBe('told');
  expect(await steps.run(retry, undefined)).toBe('retried');
  expect(retry).toHaveBeenCalledTimes(1);
});

it('retries again when the retry itself failed, and sends no message before', async () => {
  const steps = new RetryWithMessage<string>();
  const tell = vi.fn(() => Promise.resolve('told'));
  await expect(steps.run(() => Promise.reject(new Error('no')), tell)).rejects.toThrow('no');
  expect([steps.isRetried, tell.mock.calls.length]).toEqual([false, 0]);
  expect(await steps.run(() => Promise.resolve('retried'), tell)).toBe('told');
});

it('knows the budget that is spent', () => {
  const spent = (reason: string | null): string | undefined => spentBudget(reason)?.axis;
  expect(spent('budget: usd')).toBe('usd');
  expect(spent('budget: attempts')).toBe('attempts');
  expect(spent('the agent cannot start')).toBeUndefined();
  expect(spent(null)).toBeUndefined();
});
