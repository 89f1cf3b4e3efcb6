/** Requests to the server. */

import type { RawBytes } from './envelope';
import type {
  AccountLine, AgentLine, CostReport, DivergenceReport, EventPage, GoalPage, GoalReport, MergeReport, NewGoal, NewMerge, NewRetry, OpenedAccount, Problem,
  ProjectLine, QuestionLine, QueueReport,
} from './types';

const PREFIX = '/api/v1';
const UNREACHED = 'The server cannot be reached.';

/** A request that failed. The message is for people. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 when the server was not reached. */
    readonly status: number,
    readonly hint: string | undefined,
  ) {
    super(message);
  }
}

interface Access {
  session(): string | undefined;
  /** Called when the server does not accept the session. */
  refused(): void;
}

let access: Access = { session: () => undefined, refused: () => undefined };

export function setAccess(given: Access): void {
  access = given;
}

interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request and returns the reply if it is a success. */
export async function send(method: 'GET' | 'POST', path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  const session = access.session();
  if (session !== undefined) headers.Authorization = `Bearer ${session}`;
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = { method, headers, cache: 'no-store', credentials: 'omit' };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal) init.signal = options.signal;
  let response: Response;
  try {
    response = await fetch(PREFIX + path, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(UNREACHED, 0, 'Check whether `towline up` is running.');
  }
  if (response.ok) return response;
  const failure = await failureOf(response);
  if (failure.status === 401 && session !== undefined && session === access.session()) access.refused();
  throw failure;
}

async function failureOf(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined;
  return new ApiError(problem?.detail ?? `The server replied with status ${response.status}.`, response.status, problem?.hint ?? undefined);
}

async function get<T>(path: string, query: Record<string, string | number | undefined> = {}): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const response = await send('GET', search === '' ? path : `${path}?${search}`);
  return (await response.json()) as T;
}

/** How long a request without a reply keeps its key. Later, the same request is meant to happen once more. */
const KEY_LASTS = 120_000;

/** Keys of requests whose reply was lost. A person who sends the same again wants it to happen once. */
const keys = new Map<string, { key: string; since: number }>();

/** A request that changes something. The key makes it safe to send it once more when the connection breaks. */
async function post<T>(path: string, body?: unknown): Promise<T> {
  const request = `${path} ${JSON.stringify(body)}`;
  const known = keys.get(request);
  const used = known !== undefined && Date.now() - known.since < KEY_LASTS ? known : { key: randomKey(), since: Date.now() };
  keys.set(request, used);
  try {
    const reply = await postOnce<T>(path, body, used.key);
    keys.delete(request);
    return reply;
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) keys.delete(request);
    throw error;
  }
}

/** A request that can be repeated as it is: it does nothing the second time, or changes nothing at all. */
async function postOnce<T>(path: string, body?: unknown, key = randomKey()): Promise<T> {
  const options: Options = { headers: { 'Idempotency-Key': key } };
  if (body !== undefined) options.body = body;
  const response = await send('POST', path, options).catch(async (error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 0) throw error;
    await new Promise((resolve) => setTimeout(resolve, 700));
    return send('POST', path, options);
  });
  return (await response.json()) as T;
}

/** `crypto.randomUUID` is missing on pages that came over plain HTTP from another machine. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const goalPath = (id: string): string => `/goals/${encodeURIComponent(id)}`;

export const api = {
  goals: (query: { phase?: string; repository?: string; cursor?: string; limit?: number }) => get<GoalPage>('/goals', query),
  create: (goal: NewGoal) => post<GoalReport>('/goals', goal),
  goal: async (id: string): Promise<{ report: GoalReport; last: number | undefined }> => {
    const response = await send('GET', goalPath(id));
    return { report: (await response.json()) as GoalReport, last: lastPlace(response.headers.get('ETag')) };
  },
  events: (id: string, cursor: number, limit: number) => get<EventPage>(`${goalPath(id)}/events`, { cursor, limit }),
  answer: (id: string, text: string, question: number) => post<GoalReport>(`${goalPath(id)}/answer`, { text, question }),
  tell: (id: string, text: string) => post<GoalReport>(`${goalPath(id)}/tell`, { text }),
  pause: (id: string) => postOnce<GoalReport>(`${goalPath(id)}/pause`),
  resume: (id: string) => postOnce<GoalReport>(`${goalPath(id)}/resume`),
  cancel: (id: string) => postOnce<GoalReport>(`${goalPath(id)}/cancel`),
  retry: (id: string, retry: NewRetry) => post<GoalReport>(`${goalPath(id)}/retry`, retry),
  diff: async (id: string): Promise<string> => (await send('GET', `${goalPath(id)}/diff`)).text(),
  /** A part of what an attempt printed. */
  output: async (id: string, attempt: number, raw: RawBytes): Promise<string> => {
    const headers = { Range: `bytes=${raw.offset}-${raw.offset + raw.length - 1}` };
    return (await send('GET', `${goalPath(id)}/attempts/${attempt}/log`, { headers })).text();
  },
  divergence: (id: string) => get<DivergenceReport>(`${goalPath(id)}/divergence`),
  plan: (id: string, merge: NewMerge) => postOnce<MergeReport>(`${goalPath(id)}/merge`, merge),
  merge: (id: string, merge: NewMerge) => post<MergeReport>(`${goalPath(id)}/merge`, merge),
  questions: () => get<QuestionLine[]>('/questions'),
  projects: () => get<ProjectLine[]>('/projects'),
  queue: () => get<QueueReport>('/queue'),
  agents: () => get<AgentLine[]>('/agents'),
  accounts: () => get<AccountLine[]>('/accounts'),
  openAccount: (name: string) => postOnce<OpenedAccount>(`/accounts/${encodeURIComponent(name)}/open`),
  cost: (by: string, since: string) => get<CostReport>('/cost', { by, since }),
  signIn: (code: string) => postOnce<{ session: string }>('/sign-in', { code }),
  signOut: (session: string) => send('POST', '/sign-out', { headers: { Authorization: `Bearer ${session}` } }),
};

/** The tag of a goal holds the place of the newest entry of its log. Without it, the log is read from its beginning. */
function lastPlace(tag: string | null): number | undefined {
  const digits = /^(?:W\/)?"(\d+)"$/.exec(tag ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** What is left of a failure when the connection is back. */
export function withoutLoss(failure: string): string {
  return failure.includes(UNREACHED) ? '' : failure;
}

/** What a person reads about a failure. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
  return error instanceof Error ? error.message : String(error);
}
