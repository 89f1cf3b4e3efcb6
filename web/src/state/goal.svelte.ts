/** One goal: its report, and the part of its log that is on the screen. */

import { ApiError, api, messageOf } from '../lib/client';
import { buildEntries, type Entry } from '../lib/entries';
import { fields, readEnvelope, text, type Envelope } from '../lib/envelope';
import { readStream, waitOrWake } from '../lib/feed';
import { LogRange } from '../lib/range';
import { Refresh } from '../lib/refresh';
import { browserTurns, inTurn } from '../lib/turns';
import type { EventPage, GoalReport } from '../lib/types';
import { whenBack } from './back.svelte';
import { pool } from './pool.svelte';

const PAGE = 200;
const CATCH_UP = 500;
/** How many goals stay in memory, so that switching between them is immediate. */
const KEPT = 12;

/** Events after which the report is another one soon, and those after which it may take a moment. */
const QUIET = new Set(['agent.tool', 'agent.message', 'agent.thought', 'agent.plan', 'agent.progress', 'check_started', 'agent.turn_started']);

export class GoalState {
  readonly asked: string;
  report = $state.raw<GoalReport | undefined>();
  entries = $state.raw<readonly Entry[]>([]);
  /** The message that the agent is writing. */
  live = $state('');
  problem = $state('');
  reachesStart = $state(false);
  following = $state(true);
  /** Grows when the files of the workspace may have changed. */
  changes = $state(0);

  #range = new LogRange();
  #last = 0;
  #restarts = pool.restarts;
  #loading = false;
  /** Counts jumps to the end or the start, so that the last one wins. */
  #jumps = 0;
  #report = new Refresh(() => this.#readReport());
  #shown = new Refresh(async () => this.#show());
  #stop: (() => void) | undefined;
  #live: AbortController | undefined;

  constructor(id: string) {
    this.asked = id;
  }

  get id(): string {
    return this.report?.id ?? this.asked;
  }

  /** Follows the goal while it is on the screen. */
  open(): () => void {
    this.#stop?.();
    const stopListening = pool.listen((event) => this.#take(event), () => void this.#load());
    const onBack = $effect.root(() => whenBack(() => { if (this.problem !== '') void this.#load(); }));
    const onVisible = (): void => this.#followLive();
    document.addEventListener('visibilitychange', onVisible);
    this.#stop = () => {
      stopListening();
      onBack();
      document.removeEventListener('visibilitychange', onVisible);
      this.#live?.abort();
      this.#live = undefined;
      this.#stop = undefined;
    };
    void this.#load();
    return this.#stop;
  }

  /** Takes over what a request returned. Its reply may come when another goal is on the screen. */
  take(report: GoalReport): void {
    if (report.id === this.report?.id) this.report = report;
    pool.take(report);
  }

  async #load(): Promise<void> {
    if (this.#restarts !== pool.restarts) {
      this.#restarts = pool.restarts;
      this.#last = 0;
      this.#range = new LogRange();
    }
    try {
      await this.#readReport();
      // Of a log that has grown by much since it was on the screen, the end is read.
      const behind = this.#last - this.#range.last;
      if (this.#range.last === 0 || (this.#range.following && behind > 4 * CATCH_UP)) await this.toEnd();
      else if (this.#range.following) await this.#catchUp();
      this.problem = '';
      this.#closeGap();
    } catch (error) {
      this.problem = error instanceof ApiError && error.status === 404 && this.report === undefined ? `No goal has the id ${this.asked}.` : messageOf(error);
    }
  }

  async #readReport(): Promise<void> {
    const { report, last } = await api.goal(this.asked);
    this.report = report;
    this.#last = Math.max(this.#last, last ?? 0);
    if (this.#stop !== undefined) this.#followLive();
  }

  /** Shows the end of the log, and follows it. */
  async toEnd(): Promise<void> {
    const jump = ++this.#jumps;
    const page = await api.events(this.id, Math.max(0, this.#last - PAGE), CATCH_UP);
    if (jump !== this.#jumps) return;
    this.#range.reset(envelopes(page), page.events.length < CATCH_UP);
    if (!this.#range.following) await this.#catchUp();
    this.#show();
  }

  async toStart(): Promise<void> {
    const jump = ++this.#jumps;
    const page = await api.events(this.id, 0, PAGE);
    if (jump !== this.#jumps) return;
    this.#range.reset(envelopes(page), page.events.length < PAGE);
    this.#show();
  }

  async older(): Promise<void> {
    const { first } = this.#range;
    await this.#once(async () => {
      if (first <= 1) return;
      const from = Math.max(0, first - 1 - PAGE);
      this.#range.prepend(envelopes(await api.events(this.id, from, first - 1 - from)), first);
    });
  }

  async newer(): Promise<void> {
    await this.#once(async () => {
      if (this.#range.following || this.#range.last === 0) return;
      const { last } = this.#range;
      const page = await api.events(this.id, last, PAGE);
      this.#range.append(envelopes(page), page.events.length < PAGE, last);
    });
  }

  async #once(read: () => Promise<void>): Promise<void> {
    if (this.#loading) return;
    this.#loading = true;
    try {
      await read();
      this.#show();
    } catch (error) {
      this.problem = messageOf(error);
      return;
    } finally {
      this.#loading = false;
    }
    this.#closeGap();
  }

  /** Reads what arrived while something else was being read. */
  #closeGap(): void {
    if (this.#range.following && this.#range.last > 0 && this.#range.last < this.#last) void this.#once(() => this.#catchUp());
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      const { last } = this.#range;
      const page = await api.events(this.id, last, CATCH_UP);
      const reachesEnd = page.events.length < CATCH_UP;
      if (!this.#range.append(envelopes(page), reachesEnd, last) || reachesEnd) break;
    }
    this.#show();
  }

  #take(event: Envelope): void {
    if (event.goal !== this.report?.id) return;
    this.#last = Math.max(this.#last, event.seq);
    if (event.kind === 'agent.message' || event.kind === 'attempt_ended') this.live = '';
    if (event.kind === 'attempt_ended' || (event.kind === 'agent.tool' && event.fields.status === 'ok')) this.changes++;
    this.#report.within(QUIET.has(event.kind) ? 3_000 : event.kind === 'agent.usage' ? 2_000 : 100);
    if (this.#range.last === 0) return;
    const accepted = this.#range.accept(event);
    if (accepted === 'gap') void this.#once(() => this.#catchUp());
    else if (accepted === 'taken') this.#shown.within(60);
  }

  #show(): void {
    this.entries = buildEntries(this.#range.events);
    this.reachesStart = this.#range.reachesStart;
    this.following = this.#range.following;
  }

  /**
   * Reads the message that the agent is writing. The stream of all goals does not carry it, so a goal that is looked at has one of its
   * own, as long as its agent runs and the tab is visible. Of all tabs, only the one that was looked at last has such a stream.
   */
  #followLive(): void {
    const isWanted = !document.hidden && (this.report?.phase === 'running' || this.report?.phase === 'blocked');
    if (!isWanted) {
      this.#live?.abort();
      this.#live = undefined;
      this.live = '';
    } else if (this.#live === undefined) {
      this.#live = new AbortController();
      void inTurn(browserTurns('towline-live'), (turn) => this.#readLive(turn), this.#live.signal);
    }
  }

  async #readLive(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const event of readStream(`/goals/${this.id}/events`, String(this.#last), signal)) {
          if (event !== 'opened' && event.name === 'live') this.live = text(fields(JSON.parse(event.data)).text);
        }
      } catch {
        // The connection is shown by the stream of all goals.
      }
      this.live = '';
      if (!signal.aborted) await waitOrWake(3_000, signal);
    }
  }
}

function envelopes(page: EventPage): Envelope[] {
  return page.events.flatMap((value) => readEnvelope(value) ?? []);
}

const kept = new Map<string, GoalState>();

/** The goal with this id, or what this page knows of it already. */
export function goalState(id: string): GoalState {
  const known = kept.get(id) ?? new GoalState(id);
  kept.delete(id);
  kept.set(id, known);
  const oldest = kept.keys().next().value;
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest);
  return known;
}

export function forgetGoals(): void {
  kept.clear();
}
