import { describe, expect, it } from 'vitest';
import { ApiError } from './client';
import { readAgain, readEach, readPages } from './reads';

const line = (id: string, updated_at: string, phase = 'running') => ({ id, updated_at, phase });
const known = (...lines: ReturnType<typeof line>[]) => new Map(lines.map((one) => [one.id, one]));

describe('lists of goals', () => {
  it('do not replace what was read while they were', () => {
    const goals = readAgain(known(line('a', '3', 'done'), line('new', '3')), [line('a', '2'), line('b', '1')]);
    expect(goals.get('a')?.phase).toBe('done');
    expect([...goals.keys()].sort()).toEqual(['a', 'b', 'new']);
  });

  it('have the newer one of two lines, and drop goals that are in none', () => {
    const goals = readAgain(known(line('gone', '1')), [line('a', '2', 'done'), line('a', '1')]);
    expect([...goals.values()]).toEqual([line('a', '2', 'done')]);
  });
});

describe('reading goals', () => {
  it('tells those that could not be read from those that do not exist', async () => {
    const replies: Record<string, number> = { busy: 503, missing: 404 };
    const { found, gone, left, failure } = await readEach(['a', 'busy', 'missing'], async (id) => {
      const status = replies[id];
      if (status !== undefined) throw new ApiError('no', status, undefined);
      return id;
    });
    expect([found, gone, left]).toEqual([['a'], ['missing'], ['busy']]);
    expect(failure).toMatchObject({ status: 503 });
  });
});

it('all pages of a list are read', async () => {
  const pages: Record<string, { items: number[]; cursor: string | undefined }> = {
    first: { items: [1, 2], cursor: 'second' }, second: { items: [3], cursor: 'third' }, third: { items: [], cursor: undefined },
  };
  expect(await readPages(async (cursor) => pages[cursor ?? 'first'] ?? { items: [], cursor: undefined })).toEqual([1, 2, 3]);
});
