/**
 * An entry of a goal's log. The OpenAPI document leaves its shape open, so everything but the frame is read with care: a value of
 * another shape than expected is shown as nothing and breaks nothing.
 */

export interface RawBytes {
  offset: number;
  length: number;
}

export type Fields = Record<string, unknown>;

export interface Envelope {
  goal: string;
  /** Its place in the log of its goal. */
  seq: number;
  at: string;
  attempt: number | undefined;
  source: string;
  /** Whether a subagent did it. */
  below: boolean;
  /** The bytes of the attempt's output that it was read from. */
  raw: RawBytes | undefined;
  kind: string;
  /** For events of agents, the event itself. */
  fields: Fields;
}

export function readEnvelope(value: unknown): Envelope | undefined {
  const outer = fields(value);
  const event = fields(outer.event);
  const seq = outer.seq;
  if (typeof seq !== 'number' || typeof outer.goal !== 'string') return undefined;
  const isAgent = event.kind === 'agent';
  const inner = isAgent ? fields(event.event) : event;
  return {
    goal: outer.goal,
    seq,
    at: text(outer.at),
    attempt: typeof outer.attempt === 'number' ? outer.attempt : undefined,
    source: text(outer.source),
    below: typeof outer.parent === 'string',
    raw: rawOf(fields(outer.raw)),
    kind: isAgent ? `agent.${text(inner.kind)}` : text(event.kind),
    fields: inner,
  };
}

function rawOf({ offset, length }: Fields): RawBytes | undefined {
  return typeof offset === 'number' && typeof length === 'number' && length > 0 ? { offset, length } : undefined;
}

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
