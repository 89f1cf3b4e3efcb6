/** Everything about all goals: read once, and again where the events of the server show that it has changed. Nothing is polled. */

import { api, messageOf } from '../lib/client';
import { readEnvelope, text, type Envelope } from '../lib/envelope';
import { Feed, browserSurroundings, type FeedState } from '../lib/feed';
import { readAgain, readEach, readPages } from '../lib/reads';
import { Refresh } from '../lib/refresh';
import { ACTIVE, ENDED, STOPPED } from '../lib/status';
import { oneLine } from '../lib/text';
import type { AccountLine, CostReport, GoalLine, GoalReport, ProjectLine, QuestionLine, QueueReport } from '../lib/types';
import { checked } from './checked.svelte';

const PAGE = 200;
const ENDED_PAGE = 50;

/** Events after which the line of a goal is another one. */
const CHANGES_GOAL = new Set([
  'created', 'phase_changed', 'attempt_started', 'attempt_ended', 'merged', 'published', 'retry_requested', 'handed_over',
  'verdict_reached', 'agent_unavailable',
]);

class Pool {
  goals = $state.raw<ReadonlyMap<string, GoalLine>>(new Map());
  queue = $state.raw<QueueReport | undefined>();
  questions = $state.raw<readonly QuestionLine[]>([]);
  accounts = $state.raw<readonly AccountLine[]>([]);
  projects = $state.raw<readonly ProjectLine[]>([]);
  today = $state.raw<CostReport | undefined>();
  /** What each goal did last, as far as this page has seen it. */
  doing = $state.raw<ReadonlyMap<string, string>>(new Map());
  connection = $state<FeedState>('connecting');
  /** How often a lost connection came back. */
  returns = $state(0);
  loaded = $state(false);
  problem = $state('');
  /** Where the list of ended goals continues. */
  endedCursor = $state<string | undefined>();

  #feed: Feed | undefined;
  #listeners = new Set<(event: Envelope) => void>();
  #dirty = new Set<string>();
  #doing = new Map<string, string>();
  #goals = new Refresh(() => this.#readDirty());
  #queue = new Refresh(async () => { this.queue = await api.queue(); });
  #questions = new Refresh(async () => { this.questions = await api.questions(); });
  #accounts = new Refresh(async () => { this.accounts = await api.accounts(); });
  #projects = new Refresh(async () => { this.projects = await api.projects(); });
  #today = new Refresh(async () => { this.today = await api.cost('day', 'today'); });
  #shown = new Refresh(async () => { this.doing = new Map(this.#doing); });
  #all = new Refresh(() => this.#readAll());

  start(): void {
    this.stop();
    this.#feed = new Feed(browserSurroundings(), {
      event: (data) => this.#take(data),
      state: (state) => {
        if (state === 'open' && this.connection === 'lost') this.returns++;
        this.connection = state;
        if (!this.loaded || (state === 'open' && this.problem !== '')) this.#all.within(0);
      },
      removed: (data) => this.#takeRemoved(data),
      resync: () => this.reload(),
      restart: () => this.#restart(),
    });
    // Another tab may take a while to report its state.
    this.#all.within(400);
  }

  stop(): void {
    this.#feed?.stop();
    this.#feed = undefined;
    this.connection = 'connecting';
    this.loaded = false;
    this.goals = new Map();
  }

  reload(): void {
    this.#all.within(0);
    for (const listener of this.#resyncs) listener();
  }

  #resyncs = new Set<() => void>();

  /** How often the server came back with another state directory. What was read before is of no use then. */
  restarts = 0;

  #restart(): void {
    this.restarts++;
    this.goals = new Map();
    this.#doing.clear();
    this.reload();
  }

  /** Follows the events of all goals. Returns how to stop. */
  listen(event: (event: Envelope) => void, resync: () => void): () => void {
    this.#listeners.add(event);
    this.#resyncs.add(resync);
    return () => {
      this.#listeners.delete(event);
      this.#resyncs.delete(resync);
    };
  }

  /** Takes over a goal that a request returned, so that its effect shows at once. */
  take(report: GoalReport): void {
    const { attempts, ...rest } = report;
    checked.take(report);
    this.#put([{ ...rest, attempts: attempts.length }]);
    this.#queue.within(100);
    this.#questions.within(0);
  }

  /** A question is gone from the list as soon as it is answered here. */
  answered(question: QuestionLine): void {
    this.questions = this.questions.filter((one) => one.goal !== question.goal || one.id !== question.id);
  }

  /** Why a goal is held, from the queue. */
  holdOf(id: string): QueueReport['waiting'][number]['hold'] {
    return this.queue?.waiting.find((line) => line.id === id)?.hold;
  }

  async moreEnded(limit = ENDED_PAGE): Promise<void> {
    if (this.endedCursor === undefined) return;
    const page = await api.goals({ phase: ENDED.join(','), limit, cursor: this.endedCursor });
    this.endedCursor = page.cursor ?? undefined;
    this.#put(page.goals);
  }

  refreshAccounts(): void {
    this.#accounts.within(0);
    this.#queue.within(0);
  }

  async #readAll(): Promise<void> {
    try {
      await Promise.all([
        this.#readGoals(), this.#queue.now(), this.#questions.now(), this.#accounts.now(), this.#projects.now(), this.#today.now(),
      ]);
      this.loaded = true;
      this.problem = '';
    } catch (error) {
      this.problem = messageOf(error);
      throw error;
    }
  }

  async #readGoals(): Promise<void> {
    const [ended, stopped, active] = await Promise.all([
      api.goals({ phase: ENDED.join(','), limit: ENDED_PAGE }), this.#readPhases(STOPPED), this.#readPhases(ACTIVE),
    ]);
    this.endedCursor = ended.cursor ?? undefined;
    this.goals = readAgain(this.goals, [...active, ...stopped, ...ended.goals]);
  }

  #readPhases(phases: readonly string[]): Promise<GoalLine[]> {
    const query = { phase: phases.join(','), limit: PAGE };
    return readPages(async (cursor) => {
      const page = await api.goals(cursor === undefined ? query : { ...query, cursor });
      return { items: page.goals, cursor: page.cursor ?? undefined };
    });
  }

  async #readDirty(): Promise<void> {
    let ids = [...this.#dirty];
    this.#dirty.clear();
    try {
      // Many are read with one list. Those that have ended are missing in it.
      const active = ids.length > 8 ? await this.#readPhases(ACTIVE) : [];
      this.#put(active);
      const listed = new Set(active.map((goal) => goal.id));
      const { found, gone, left, failure } = await readEach(ids.filter((id) => !listed.has(id)), async (id) => (await api.goal(id)).report);
      found.forEach(checked.take);
      this.#put(found.map(({ attempts, ...rest }) => ({ ...rest, attempts: attempts.length })));
      this.#forget(gone);
      ids = left;
      if (failure !== undefined) throw failure;
    } catch (error) {
      for (const id of ids) this.#dirty.add(id);
      throw error;
    }
  }

  #put(lines: readonly GoalLine[]): void {
    if (lines.length === 0) return;
    const goals = new Map(this.goals);
    for (const line of lines) {
      const known = goals.get(line.id);
      if (known === undefined || known.updated_at <= line.updated_at) goals.set(line.id, line);
    }
    this.goals = goals;
  }

  #forget(gone: readonly string[]): void {
    if (!gone.some((id) => this.goals.has(id))) return;
    const goals = new Map(this.goals);
    for (const id of gone) goals.delete(id);
    this.goals = goals;
    this.#queue.within(0);
    this.#questions.within(0);
  }

  /** The server knows whether the goal is there, so it is asked. */
  #takeRemoved(data: string): void {
    const { goal } = JSON.parse(data) as { goal: string };
    this.#dirty.add(goal);
    this.#goals.within(0);
  }

  #take(data: string): void {
    let event: Envelope | undefined;
    try {
      event = readEnvelope(JSON.parse(data));
    } catch {
      return;
    }
    if (event === undefined) return;
    this.#invalidate(event);
    for (const listener of this.#listeners) listener(event);
  }

  #invalidate(event: Envelope): void {
    const { kind } = event;
    if (CHANGES_GOAL.has(kind)) {
      this.#dirty.add(event.goal);
      this.#goals.within(150);
      this.#queue.within(250);
      this.#projects.within(600);
    }
    if (kind === 'phase_changed' || kind === 'agent.asked' || kind === 'answered' || kind === 'agent.withdrawn') this.#questions.within(100);
    if (kind === 'agent.rate_limit' || kind === 'account_unavailable' || kind === 'attempt_ended') this.#accounts.within(500);
    if (kind === 'agent.usage' || kind === 'attempt_ended') {
      this.#dirty.add(event.goal);
      this.#goals.within(4_000);
      this.#today.within(5_000);
    }
    const doing = doingOf(event);
    if (doing !== undefined) {
      this.#doing.set(event.goal, doing);
      this.#shown.within(500);
    }
  }
}

/** The folder of a workspace says nothing on the board. */
const WORKSPACE = /\/\S*\/workspaces\/[0-9a-f-]{36}\//g;

function doingOf(event: Envelope): string | undefined {
  switch (event.kind) {
    case 'agent.tool':
      return oneLine(`${text(event.fields.name)}: ${text(event.fields.title).replaceAll(WORKSPACE, '')}`);
    case 'agent.message':
      return event.fields.role === 'assistant' ? oneLine(text(event.fields.text).slice(0, 300)) : undefined;
    case 'agent.progress':
      return oneLine(text(event.fields.text));
    case 'check_started':
      return `check: ${oneLine(text(event.fields.name))}`;
    case 'attempt_ended':
      return '';
    default:
      return undefined;
  }
}

export const pool = new Pool();
