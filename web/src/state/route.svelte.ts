import { flushSync } from 'svelte';
import { formatRoute, parseRoute, type GoalTab, type Query, type Route } from '../lib/router';

/** Where the page is. */
class Place {
  route = $state.raw<Route>(parseRoute(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.route = parseRoute(location.hash);
    });
  }

  /** Goes there at once, so that what is typed next arrives there. */
  go(link: string): void {
    location.hash = link;
    this.route = parseRoute(link);
    flushSync();
  }

  /** Changes parameters without a new entry in the history. */
  refine(changes: Query): void {
    const query = { ...this.route.query, ...changes };
    history.replaceState(null, '', formatRoute({ ...this.route, query } as Route));
    this.route = parseRoute(location.hash);
  }
}

export const place = new Place();

export const boardLink = formatRoute({ view: 'board', query: {} });

export function goalLink(id: string, tab: GoalTab = 'activity', query: Query = {}): string {
  return formatRoute({ view: 'goal', id, tab, query });
}
