/** Reads of many goals, which events may overtake and which may fail in part. */

import { ApiError } from './client';

interface Line {
  id: string;
  updated_at: string;
}

/** The goals of lists that were just read. A line that is newer than them was read meanwhile, and stays. */
export function readAgain<T extends Line>(known: ReadonlyMap<string, T>, listed: readonly T[]): Map<string, T> {
  // A goal may have moved from one list to the other in between.
  const sorted = [...listed].sort((a, b) => a.updated_at.localeCompare(b.updated_at));
  const newest = sorted.at(-1)?.updated_at ?? '';
  const goals = new Map(sorted.map((line) => [line.id, line]));
  for (const line of known.values()) {
    if (line.updated_at > (goals.get(line.id)?.updated_at ?? newest)) goals.set(line.id, line);
  }
  return goals;
}

interface Reads<T> {
  found: T[];
  /** Those that do not exist. */
  gone: string[];
  /** Those that could not be read. */
  left: string[];
  failure: unknown;
}

/** Reads each of them. */
export async function readEach<T>(ids: readonly string[], read: (id: string) => Promise<T>): Promise<Reads<T>> {
  const found: T[] = [];
  const gone: string[] = [];
  const left: string[] = [];
  let failure: unknown;
  await Promise.all(ids.map(async (id) => {
    try {
      found.push(await read(id));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) {
        gone.push(id);
        return;
      }
      left.push(id);
      failure ??= error;
    }
  }));
  return { found, gone, left, failure };
}

/** All pages of a list. */
export async function readPages<T>(read: (cursor: string | undefined) => Promise<{ items: readonly T[]; cursor: string | undefined }>): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}
