/** Addresses of the page. They are in the fragment, so that the server has one document and never sees them. */

export type Route =
  | { view: 'board'; query: Query }
  | { view: 'goal'; id: string; tab: GoalTab; query: Query }
  | { view: 'new'; query: Query }
  | { view: 'cost'; query: Query }
  /** An address that names nothing. */
  | { view: 'unknown'; path: string; query: Query };

export type GoalTab = 'activity' | 'review' | 'attempts';
export type Query = Readonly<Record<string, string>>;

const TABS: readonly string[] = ['review', 'attempts'];

/** The route of a fragment. */
export function parseRoute(fragment: string): Route {
  const [path = '', search = ''] = split(fragment.replace(/^#/, ''));
  const query: Query = Object.fromEntries(new URLSearchParams(search));
  const parts = path.split('/').filter(Boolean);
  const [first, id, tab] = parts;
  if (first === 'goal' && id !== undefined && /^[0-9a-f-]{1,36}$/i.test(id)) {
    return { view: 'goal', id, tab: tab !== undefined && TABS.includes(tab) ? (tab as GoalTab) : 'activity', query };
  }
  if (first === 'new' || first === 'cost') return { view: first, query };
  // The code of a sign-in link leaves the address at once.
  if (first === undefined || path.startsWith('code=')) return { view: 'board', query };
  return { view: 'unknown', path, query };
}

export function formatRoute(route: Route): string {
  const search = new URLSearchParams(Object.entries(route.query).filter(([, value]) => value !== '')).toString();
  return `#${pathOf(route)}${search === '' ? '' : `?${search}`}`;
}

function pathOf(route: Route): string {
  switch (route.view) {
    case 'board':
      return '/';
    case 'goal':
      return route.tab === 'activity' ? `/goal/${route.id}` : `/goal/${route.id}/${route.tab}`;
    case 'unknown':
      return route.path;
    default:
      return `/${route.view}`;
  }
}

/** The one-time code of a sign-in link. */
export function signInCode(fragment: string): string | undefined {
  return /^#?code=([A-Za-z0-9_\-.~]{1,512})$/.exec(fragment)?.[1];
}

function split(fragment: string): [string, string] {
  const mark = fragment.indexOf('?');
  return mark < 0 ? [fragment, ''] : [fragment.slice(0, mark), fragment.slice(mark + 1)];
}
