import { describe, expect, it } from 'vitest';
import { ACTIVE, arrivalOf, ENDED, PHASES, proofOf, reasonOf, statusOf, STOPPED, stepsOf } from './status';

describe('the status of a goal', () => {
  it('never shows a goal that needs an answer like one that runs, waits or has ended', () => {
    const others = PHASES.filter((phase) => phase !== 'blocked' && phase !== 'escalated');
    for (const phase of ['blocked', 'escalated']) {
      const status = statusOf({ phase });
      expect(status.group).toBe('needs');
      for (const other of others) {
        expect(statusOf({ phase: other }).tone).not.toBe(status.tone);
        expect(statusOf({ phase: other }).label).not.toBe(status.label);
      }
    }
  });

  it('shows work without checks apart from work that is proven', () => {
    expect(statusOf({ phase: 'unproven' }).tone).not.toBe(statusOf({ phase: 'done' }).tone);
  });

  it('shows a phase that nobody knows by its name, and not as good', () => {
    expect(statusOf({ phase: 'levitating' })).toEqual({ label: 'levitating', tone: 'bad', group: 'waiting' });
  });

  it('offers what the phase allows', () => {
    expect(stepsOf({ phase: 'running' })).toMatchObject({ tell: true, pause: true, resume: false, cancel: true, retry: false, merge: false });
    expect(stepsOf({ phase: 'done' })).toMatchObject({ tell: false, pause: false, cancel: false, retry: false, merge: true });
    expect(stepsOf({ phase: 'escalated' })).toMatchObject({ tell: true, pause: false, retry: true });
    expect(stepsOf({ phase: 'paused' })).toMatchObject({ resume: true, pause: false });
  });

  it('offers no merge of work that is merged already', () => {
    const merged = { candidate: 'c1' };
    expect(stepsOf({ phase: 'done', candidate: 'c1', merged }).merge).toBe(false);
    expect(stepsOf({ phase: 'done', merged }).merge).toBe(false);
    expect(stepsOf({ phase: 'unproven', candidate: 'c2', merged }).merge).toBe(true);
    expect(stepsOf({ phase: 'done', candidate: 'c1', merged: null }).merge).toBe(true);
  });

  it('has the reason of a goal that is held', () => {
    expect(reasonOf({ phase: 'queued', hold: { reason: 'slot', text: 'waits for a slot' } })).toBe('waits for a slot');
    expect(reasonOf({ phase: 'escalated', reason: 'no progress' })).toBe('no progress');
    expect(reasonOf({ phase: 'failed', reason: 'budget: attempts' })).toBe('the budget of attempts is spent');
    expect(reasonOf({ phase: 'running' })).toBe('');
  });
});

it('every phase that the server knows is listed once', () => {
  expect([...ACTIVE, ...STOPPED, ...ENDED].sort()).toEqual(PHASES.filter((phase) => phase !== 'unreadable').sort());
});

it('a merge of a goal without checks promises none', () => {
  expect(proofOf({ proven: false }, { phase: 'unproven' })).toBe('None: this goal has no checks.');
  expect(proofOf({ proven: false }, { phase: 'done' })).toMatch(/they run before the merge/);
  expect(proofOf({ proven: true }, { phase: 'done' })).toMatch(/have passed/);
});

it('a message arrives when the agent can read it', () => {
  expect(['running', 'blocked', 'checking', 'sleeping'].map((phase) => arrivalOf({ phase }))).toEqual([
    'when its running tool has ended, or its turn', 'when its running tool has ended, or its turn', 'if it continues', 'when it continues',
  ]);
});
