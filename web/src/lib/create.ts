/** Why a goal was not created, in the words of the form. */

import { ApiError, messageOf } from './client';

/** How the server begins a message about the field of the project. */
const FIELD = /^`repository` /;
const NO_REPOSITORY = ' is not inside a git repository';

export function createFailure(error: unknown): { message: string; aboutProject: boolean } {
  const whole = messageOf(error);
  if (!(error instanceof ApiError) || error.status !== 422) return { message: whole, aboutProject: false };
  const aboutProject = FIELD.test(error.message) || error.message.includes(NO_REPOSITORY);
  // Of the ways out that the command line has, working in the directory itself is none of this form.
  const told = whole.replace(FIELD, 'it ').replace(/, start from a directory that is in one, or work in the directory itself \(`--in-place`\)/, ', or name another folder');
  return { message: aboutProject ? `Project: ${told}` : told, aboutProject };
}
