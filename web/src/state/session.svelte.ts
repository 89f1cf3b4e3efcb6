/** Who is signed in. The session is in the page's own storage: a cookie would go to every port of the host, including those of agents. */

import { sentence } from '../lib/format';
import { ApiError, api, messageOf, setAccess } from '../lib/client';
import { signInCode } from '../lib/router';
import { load, onOtherTab, store } from '../lib/storage';

const KEY = 'session';

class Session {
  value = $state<string | undefined>(load(KEY));
  /** Why there is none, where that is known. */
  reason = $state('');
  busy = $state(false);

  constructor() {
    setAccess({ session: () => this.value, refused: () => this.end('This session has ended.') });
    onOtherTab(KEY, (value) => {
      this.value = value;
      this.reason = '';
    });
  }

  end(reason: string): void {
    this.value = undefined;
    this.reason = reason;
    store(KEY, undefined);
  }

  async signOut(): Promise<void> {
    const session = this.value;
    // Nothing more is sent with the session while the server ends it.
    this.end('You are signed out.');
    if (session === undefined) return;
    try {
      await api.signOut(session);
    } catch (error) {
      // It has ended before.
      if (error instanceof ApiError && error.status === 401) return;
      if (this.value === undefined) {
        this.reason = 'This browser has forgotten the session, but the server could not end it. Run `towline open --sign-out` to end all sessions.';
      }
    }
  }

  /** Uses the code of a sign-in link, which leaves the address bar and the history at once. */
  async useLink(): Promise<void> {
    const code = signInCode(location.hash);
    if (code === undefined) return;
    history.replaceState(null, '', location.pathname);
    this.busy = true;
    // A session that is there does not end because of an old code, nor is it shown to whoever answers the code.
    const before = this.value;
    this.value = undefined;
    try {
      const { session } = await api.signIn(code);
      this.value = session;
      this.reason = '';
      store(KEY, session);
    } catch (error) {
      if (before !== undefined) {
        this.value = before;
        return;
      }
      const isWrong = error instanceof ApiError && [400, 401, 403, 404, 409, 422].includes(error.status);
      this.end(isWrong ? `${sentence(error.message)}.` : messageOf(error));
    } finally {
      this.busy = false;
    }
  }
}

export const session = new Session();
