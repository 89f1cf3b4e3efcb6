/** Turns the log of a goal into what people read: one entry for each thing, however many events it took. */

import { fields, list, number, text, type Envelope, type Fields, type RawBytes } from './envelope';
import { words } from './format';
import { statusOf, type Tone } from './status';

export type Content =
  | { kind: 'message'; text: string }
  | { kind: 'prompt'; text: string }
  | { kind: 'thought'; text: string }
  | { kind: 'tool'; tool: Tool }
  | { kind: 'told'; text: string }
  | { kind: 'asked'; text: string; isPermission: boolean }
  | { kind: 'answered'; text: string; by: string }
  | { kind: 'check'; check: Check }
  | { kind: 'plan'; entries: { text: string; done: boolean }[] }
  | { kind: 'divider'; text: string; tone: Tone }
  | { kind: 'note'; text: string; tone: Tone };

export interface Tool {
  name: string;
  title: string;
  status: string;
  input: string;
  output: string;
  exitCode: number | undefined;
  /** The agent's own record of the last step, which has the whole output. */
  raw: RawBytes | undefined;
}

export interface Check {
  name: string;
  state: 'running' | 'passed' | 'failed' | 'cancelled';
  evidence: string;
  problem: string;
  seconds: number | undefined;
}

export interface Entry {
  /** The place of its first event. */
  key: number;
  at: string;
  attempt: number | undefined;
  /** Whether a subagent did it. */
  below: boolean;
  content: Content;
}

export function buildEntries(events: readonly Envelope[]): Entry[] {
  const entries: Entry[] = [];
  /** Entries that a later event changes. */
  const open = new Map<string, Entry>();
  for (const event of events) {
    const id = openId(event);
    const known = id === undefined ? undefined : open.get(id);
    const content = contentOf(event, known?.content);
    if (event.kind === 'attempt_ended' || content?.kind === 'divider') endOpen(open, event);
    if (content === undefined) continue;
    if (known === undefined) {
      const entry = { key: event.seq, at: event.at, attempt: event.attempt, below: event.below, content };
      entries.push(entry);
      if (id !== undefined) open.set(id, entry);
    } else {
      known.content = content;
    }
    // The next run of the checks has entries of its own.
    if (event.kind === 'verdict_reached' || event.kind === 'judge_unavailable' || event.kind === 'attempt_started') {
      for (const one of open.keys()) if (one.startsWith('check:')) open.delete(one);
    }
  }
  return entries;
}

/** What is cut off by the end of its attempt or its goal reports no end of its own. */
function endOpen(open: ReadonlyMap<string, Entry>, { kind, attempt }: Envelope): void {
  for (const entry of open.values()) {
    const { content } = entry;
    if (content.kind === 'tool' && (kind !== 'attempt_ended' || entry.attempt === attempt) && UNDER_WAY.has(content.tool.status)) {
      entry.content = { kind: 'tool', tool: { ...content.tool, status: 'cancelled' } };
    } else if (content.kind === 'check' && kind === 'phase_changed' && content.check.state === 'running') {
      entry.content = { kind: 'check', check: { ...content.check, state: 'cancelled' } };
    }
  }
}

const UNDER_WAY = new Set(['pending', 'running']);

function openId({ kind, attempt, fields: given }: Envelope): string | undefined {
  if (kind === 'agent.tool') return `tool:${attempt}:${text(given.id)}`;
  if (kind === 'check_started') return `check:${text(given.name)}`;
  if (kind === 'check_finished') return `check:${text(fields(given.result).name)}`;
  if (kind === 'judge_unavailable') return `check:${text(given.check)}`;
  return undefined;
}

function contentOf(event: Envelope, before: Content | undefined): Content | undefined {
  const { kind, fields: given } = event;
  if (kind.startsWith('agent.')) return agentContent(event, before);
  switch (kind) {
    case 'attempt_started':
      return { kind: 'divider', text: `Attempt ${event.attempt ?? ''}`, tone: 'busy' };
    case 'attempt_ended':
      return attemptEnded(event);
    case 'told':
      return { kind: 'told', text: text(given.text) };
    case 'answered':
      return { kind: 'answered', text: replyText(fields(given.reply)), by: text(given.by) };
    case 'check_started':
      return { kind: 'check', check: { name: text(given.name), state: 'running', evidence: '', problem: '', seconds: undefined } };
    case 'check_finished':
      return { kind: 'check', check: checkOf(fields(given.result)) };
    case 'verdict_reached':
      return verdict(fields(given.verdict));
    case 'phase_changed':
      return phaseChanged(text(fields(given.phase).phase));
    default:
      return noteOf(event);
  }
}

function agentContent(event: Envelope, before: Content | undefined): Content | undefined {
  const given = event.fields;
  switch (event.kind.slice('agent.'.length)) {
    case 'message':
      return { kind: given.role === 'user' ? 'prompt' : 'message', text: text(given.text) };
    case 'thought':
      return { kind: 'thought', text: text(given.text) };
    case 'tool':
      return { kind: 'tool', tool: toolOf(event, before?.kind === 'tool' ? before.tool : undefined) };
    case 'plan':
      return { kind: 'plan', entries: list(given.entries).map(fields).map((one) => ({ text: text(one.text), done: one.done === true })) };
    case 'asked':
      return { kind: 'asked', text: askedText(fields(given.about)), isPermission: fields(given.about).about === 'permission' };
    case 'progress': {
      const percent = number(given.percent);
      return { kind: 'note', text: `${percent === undefined ? '' : `${percent} %: `}${text(given.text)}`, tone: 'quiet' };
    }
    case 'submitted':
      return { kind: 'note', text: `The agent reports that the goal is reached: ${text(given.summary)}`, tone: 'quiet' };
    case 'decided':
      return given.by === 'rule' && given.outcome === 'allow' ? undefined : decided(given);
    case 'retrying':
      return { kind: 'note', text: `The agent tries a request again (${text(given.error) || `status ${number(given.status) ?? 'unknown'}`}).`, tone: 'wait' };
    case 'rate_limit':
      return rateLimit(given);
    case 'compacted':
      return { kind: 'note', text: 'The conversation was summarised.', tone: 'quiet' };
    case 'not_compacted':
      return { kind: 'note', text: `The conversation was not summarised: ${text(given.reason)}`, tone: 'quiet' };
    case 'withdrawn':
      return { kind: 'note', text: 'The agent does not wait for the answer any more.', tone: 'quiet' };
    case 'sleep_asked':
      return { kind: 'note', text: `The agent wants to wait: ${text(given.reason)}`, tone: 'wait' };
    case 'notice':
      return { kind: 'note', text: text(given.text), tone: 'quiet' };
    case 'turn_ended':
      return turnEnded(fields(given.stop), text(given.text));
    case 'unrecognised':
      return { kind: 'note', text: `Output that was not understood: ${text(given.what)}`, tone: 'quiet' };
    default:
      return undefined;
  }
}

function toolOf({ fields: given, raw }: Envelope, before: Tool | undefined): Tool {
  return {
    name: text(given.name) || before?.name || '',
    title: text(given.title) || before?.title || '',
    status: text(given.status),
    input: given.input == null ? (before?.input ?? '') : inputText(given.input),
    output: text(given.output) || before?.output || '',
    exitCode: number(given.exit_code) ?? before?.exitCode,
    raw: raw ?? before?.raw,
  };
}

/** A command as it is typed; anything else as JSON. */
function inputText(input: unknown): string {
  const command = fields(input).command;
  return typeof command === 'string' ? command : JSON.stringify(input, null, 2);
}

function askedText(about: Fields): string {
  if (about.about === 'permission') return `May it use ${text(fields(about.call).tool)}: ${text(about.title)}`;
  return list(about.parts).map((part) => text(fields(part).text)).join('\n');
}

/** An answer in words. */
export function replyText(reply: Fields): string {
  switch (reply.reply) {
    case 'chosen':
      return list(reply.answers).map(text).join('\n');
    case 'allowed':
      return 'Allowed once';
    case 'always':
      return 'Always allowed';
    case 'denied':
      return text(reply.message) === '' ? 'Denied' : `Denied: ${text(reply.message)}`;
    default:
      return '';
  }
}

function decided(given: Fields): Content {
  const outcome = given.outcome === 'allow' ? 'allowed' : 'denied';
  return { kind: 'note', text: `${text(given.tool)} was ${outcome} (${text(given.by)})`, tone: outcome === 'denied' ? 'bad' : 'quiet' };
}

function rateLimit(given: Fields): Content | undefined {
  if (given.status === 'allowed') return undefined;
  const used = number(given.utilization);
  const scope = words(text(given.scope)) || 'quota';
  return { kind: 'note', text: `${scope}: ${used === undefined ? words(text(given.status)) : `${Math.round(used * 100)} % used`}`, tone: 'wait' };
}

function turnEnded(stop: Fields, last: string): Content | undefined {
  if (stop.why === 'done') return undefined;
  const why = stop.why === 'failed' ? `failed: ${last || text(stop.reason)}` : 'was interrupted';
  return { kind: 'note', text: `The turn ${why}`, tone: 'bad' };
}

function attemptEnded(event: Envelope): Content {
  const end = text(fields(event.fields.end).end);
  const exit = fields(event.fields.exit);
  const tone: Tone = end === 'completed' ? 'quiet' : end === 'asked' || end === 'slept' || end === 'interrupted' ? 'wait' : 'bad';
  const detail = text(fields(event.fields.end).message) || (tone === 'bad' ? text(exit.stderr_tail).trim().slice(-400) : '');
  // Whether the goal is reached is for the checks to say.
  if (end === 'completed' && detail === '') return { kind: 'divider', text: 'The agent ended its turn', tone };
  return { kind: 'divider', text: `Attempt ${event.attempt ?? ''} ended: ${words(end)}${detail === '' ? '' : ` (${detail})`}`, tone };
}

function checkOf(result: Fields): Check {
  const took = fields(result.took);
  return {
    name: text(result.name),
    state: result.met === true ? 'passed' : 'failed',
    evidence: text(result.evidence),
    problem: text(result.problem),
    seconds: number(took.secs) === undefined ? undefined : (number(took.secs) ?? 0) + (number(took.nanos) ?? 0) / 1e9,
  };
}

function verdict(given: Fields): Content {
  const checks = list(given.checks).map(fields);
  const failed = checks.filter((check) => check.met !== true).length;
  return { kind: 'note', text: `${outcome(failed, checks.length)}.`, tone: failed === 0 ? 'good' : 'bad' };
}

/** How many of the checks failed, in words. */
function outcome(failed: number, all: number): string {
  if (all === 1) return failed === 0 ? 'The check passed' : 'The check failed';
  if (failed === 0) return `All ${all} checks passed`;
  return failed === all ? `All ${all} checks failed` : `${failed} of ${all} checks failed`;
}

/** Phases that a person wants to see between the lines; the others show by what happens in them. */
const SHOWN_PHASES = new Set(['sleeping', 'limited', 'paused', 'escalated', 'done', 'unproven', 'failed', 'cancelled']);

function phaseChanged(phase: string): Content | undefined {
  if (!SHOWN_PHASES.has(phase)) return undefined;
  const status = statusOf({ phase });
  return { kind: 'divider', text: status.label, tone: status.tone };
}

const NOTES: Readonly<Record<string, string>> = {
  created: 'The goal was created.',
  cancel_requested: 'Cancel was requested.',
  pause_requested: 'A pause was requested.',
  resume_requested: 'The goal was resumed.',
  retry_requested: 'The goal was opened again.',
  checks_replaced: 'The checks were replaced.',
  left: 'The person left the session.',
  compact_requested: 'A summary of the conversation was requested.',
  shared_budget_spent: 'A budget that goals share is spent; the goal continues later.',
  restored: 'Files were put back as they were.',
};

function noOpinion(reason: Fields): string {
  if (reason.why === 'limited') return 'the quota of its account is used up.';
  if (reason.why === 'budget') return `the budget of ${text(reason.axis)} is spent.`;
  return text(reason.message);
}

function noteOf({ kind, fields: given }: Envelope): Content | undefined {
  const note = (value: string, tone: Tone = 'quiet'): Content => ({ kind: 'note', text: value, tone });
  switch (kind) {
    case 'prepared':
      return list(given.warnings).length === 0 ? undefined : note(list(given.warnings).map(text).join('\n'), 'wait');
    case 'prepare_failed':
    case 'unconfigured':
    case 'checks_failed':
      return note(text(given.error), 'bad');
    case 'repository_gone':
      return note(`The repository ${text(given.path)} was moved or deleted.`, 'bad');
    case 'baseline_reached': {
      const checks = list(given.checks).map(fields);
      const failed = checks.filter((check) => check.met !== true).length;
      return note(`Before any work: ${outcome(failed, checks.length).replace(/^[TA]/, (letter) => letter.toLowerCase())}.`);
    }
    case 'baseline_unknown':
      return note(`Nothing is known about the checks before the work: ${text(given.reason)}`, 'wait');
    case 'judge_unavailable':
      return note(`The judge ${text(given.agent)} of ${text(given.check)} gave no verdict: ${noOpinion(fields(given.reason))}`, 'wait');
    case 'handed_over':
      return note(`${text(given.to)} continues the work of ${text(given.from)}: ${text(given.why)}`);
    case 'account_unavailable':
      return note(`The account ${text(given.account)} cannot be used.`, 'wait');
    case 'agent_unavailable':
      return note(`${text(given.agent)} cannot be used: ${text(given.why)}`, 'wait');
    case 'clock_ran_out':
      return note(`Timeout: ${words(text(given.clock)) || 'reached'}`, 'wait');
    case 'entered':
      return note(`A person took over the session of ${text(given.agent)}.`);
    case 'merged':
      return note(`The work was merged into ${text(given.into)}.`, 'good');
    case 'published':
      return note(`The work is on the branch ${text(given.branch)}.`);
    case 'verified':
      return note('The checks ran once more.');
    case 'notice':
      return note(text(given.text));
    default:
      return NOTES[kind] === undefined ? undefined : note(NOTES[kind]);
  }
}
