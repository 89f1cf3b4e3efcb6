import { describe, expect, it } from 'vitest';
import { ApiError } from './client';
import { createFailure } from './create';

describe('why a goal was not created', () => {
  it('names the field of the project as the form does', () => {
    expect(createFailure(new ApiError('`repository` is not a directory of this machine', 422, undefined))).toEqual({
      message: 'Project: it is not a directory of this machine', aboutProject: true,
    });
    const outside = '/tmp is not inside a git repository; run `git init` there and make a first commit, start from a directory that is in one, or work in the directory itself (`--in-place`)';
    expect(createFailure(new ApiError(outside, 422, undefined))).toEqual({
      message: 'Project: /tmp is not inside a git repository; run `git init` there and make a first commit, or name another folder', aboutProject: true,
    });
  });

  it('leaves other failures as they are', () => {
    expect(createFailure(new ApiError('`prompt` is empty', 422, 'write one'))).toEqual({ message: '`prompt` is empty (write one)', aboutProject: false });
    expect(createFailure(new Error('no'))).toEqual({ message: 'no', aboutProject: false });
  });
});
