/**
 * A browser with a page that is signed in. The server is somebody else's: these variables name it.
 *
 *   TOWLINE_LINK         a sign-in link of `towline open`, not used yet
 *   TOWLINE_REPOSITORY   a git repository with one commit, for new goals
 *   TOWLINE_CHROMIUM     the browser (default /usr/bin/chromium)
 *   TOWLINE_SHOTS        a folder for screenshots of every view (default: none are made)
 *
 * The server has the agents `works`, `asks`, `permit` (with permission = "ask") and `long`, all of them `agent.mjs`, and no baseline.
 */

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

export interface Desk {
  browser: Browser;
  context: BrowserContext;
  page: Page;
  /** Everything that the browser complained about. */
  complaints: string[];
  link: string;
  home: string;
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set; tests/browser.ts has what it means`);
  return value;
}

export const repository = (): string => variable('TOWLINE_REPOSITORY');
export const shots = process.env.TOWLINE_SHOTS;

export async function openDesk(): Promise<Desk> {
  const link = variable('TOWLINE_LINK');
  const browser = await chromium.launch({ executablePath: process.env.TOWLINE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error.stack)));
  return { browser, context, page, complaints, link, home: new URL('/', link).href };
}

/** Sends a request with the session of the page. */
export async function request(page: Page, method: string, path: string, body?: unknown): Promise<{ status: number; json: any }> {
  return page.evaluate(
    async ({ method, path, body }) => {
      const headers = { Authorization: `Bearer ${localStorage.getItem('towline.session')}`, 'Content-Type': 'application/json' };
      const response = await fetch(`/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
      return { status: response.status, json: await response.json().catch(() => undefined) };
    },
    { method, path, body },
  );
}

/** Creates a goal for one of the scripted agents, and returns its id. */
export async function createGoal(page: Page, agent: string, prompt: string, more: object = {}): Promise<string> {
  const { status, json } = await request(page, 'POST', '/goals', {
    prompt, repository: repository(), agents: [agent], checks: ['test -f work.txt'], budget: { usd: 100 }, ...more,
  });
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(json)}`);
  return json.id as string;
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Violations that keep somebody from using the view. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as any).axe.run(document, { resultTypes: ['violations'] });
    const severe = violations.filter((one: any) => one.impact === 'serious' || one.impact === 'critical');
    return severe.map((one: any) => `${one.id}: ${one.nodes.map((node: any) => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`);
  });
}
