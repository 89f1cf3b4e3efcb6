import { describe, expect, it } from 'vitest';
import { buildEntries } from './entries';
import { readEnvelope, type Envelope } from './envelope';

let seq = 0;
function event(event: object, attempt: number | null = 1): Envelope {
  const read = readEnvelope({ goal: 'g', seq: ++seq, at: '', attempt, source: 'agent', parent: null, raw: null, event });
  if (read === undefined) throw new Error('not an event');
  return read;
}
const agent = (inner: object): Envelope => event({ kind: 'agent', event: inner });

describe('entries of a log', () => {
  it('show a tool call once, with what is known of it in the end', () => {
    const call = { kind: 'tool', id: 't1', name: 'Bash', title: 'ls', input: { command: 'ls -l' }, output: null, exit_code: null };
    const entries = buildEntries([agent({ ...call, status: 'running' }), agent({ ...call, status: 'ok', input: null, output: 'a.txt', exit_code: 0 })]);
    expect(entries.map((entry) => entry.content)).toEqual([
      { kind: 'tool', tool: { name: 'Bash', title: 'ls', status: 'ok', input: 'ls -l', output: 'a.txt', exitCode: 0, raw: undefined } },
    ]);
  });

  it('show each run of a check apart', () => {
    const run = (met: boolean): Envelope[] => [
      event({ kind: 'check_started', name: 'tests' }),
      event({ kind: 'check_finished', result: { name: 'tests', met, evidence: 'e', problem: null, took: { secs: 1, nanos: 5e8 } } }),
      event({ kind: 'verdict_reached', verdict: { checks: [{ met }] } }),
    ];
    const contents = buildEntries([...run(false), ...run(true)]).map((entry) => entry.content);
    const check = (state: string) => ({ kind: 'check', check: { name: 'tests', state, evidence: 'e', problem: '', seconds: 1.5 } });
    expect(contents).toEqual([
      check('failed'),
      { kind: 'note', text: 'The check failed.', tone: 'bad' },
      check('passed'),
      { kind: 'note', text: 'The check passed.', tone: 'good' },
    ]);
  });

  it('count the checks that failed', () => {
    const verdict = (...met: boolean[]): Envelope => event({ kind: 'verdict_reached', verdict: { checks: met.map((one) => ({ met: one })) } });
    const entries = buildEntries([verdict(true, true), verdict(true, false), verdict(false, false), event({ kind: 'baseline_reached', checks: [{ met: false }] })]);
    expect(entries.map(({ content }) => 'text' in content && content.text)).toEqual([
      'All 2 checks passed.', '1 of 2 checks failed.', 'All 2 checks failed.', 'Before any work: the check failed.',
    ]);
  });

  it('show no tool and no check as running once its attempt or its goal has ended', () => {
    const call = (id: string, status: string): Envelope => agent({ kind: 'tool', id, name: 'Bash', title: id, status });
    const entries = buildEntries([
      call('a', 'ok'), call('b', 'running'),
      event({ kind: 'attempt_ended', end: { end: 'completed' }, exit: {} }),
      event({ kind: 'check_started', name: 'tests' }),
      event({ kind: 'phase_changed', phase: { phase: 'cancelled' } }),
    ]);
    const states = entries.map(({ content }) => (content.kind === 'tool' ? content.tool.status : content.kind === 'check' ? content.check.state : 'text' in content && content.text));
    expect(states).toEqual(['ok', 'cancelled', 'The agent ended its turn', 'cancelled', 'cancelled']);
  });

  it('show a judge without a verdict as a remark in place of its check', () => {
    const round = (reason: object): Envelope[] => [
      event({ kind: 'check_started', name: 'review' }),
      event({ kind: 'judge_unavailable', check: 'review', agent: 'critic', account: 'critic', reason }),
    ];
    const events = [...round({ why: 'limited', until: null, guessed: false }), ...round({ why: 'unusable', message: 'sign in' })];
    const remark = (why: string) => ({ kind: 'note', text: `The judge critic of review gave no verdict: ${why}`, tone: 'wait' });
    expect(buildEntries(events).map((entry) => entry.content)).toEqual([remark('the quota of its account is used up.'), remark('sign in')]);
  });

  it('leave out what only machines need', () => {
    expect(buildEntries([event({ kind: 'claimed', worker: 'w' }), agent({ kind: 'usage' }), event({ kind: 'something_new' })])).toEqual([]);
  });

  it('survive events of another shape', () => {
    const odd = [agent({ kind: 'tool', id: 5, input: [1], output: {} }), agent({ kind: 'plan', entries: 'x' }), event({ kind: 'verdict_reached', verdict: null }), event({ kind: 'attempt_ended' })];
    expect(buildEntries(odd).length).toBe(4);
    expect(readEnvelope(null)).toBeUndefined();
    expect(readEnvelope({ goal: 'g', seq: 'x' })).toBeUndefined();
  });
});
