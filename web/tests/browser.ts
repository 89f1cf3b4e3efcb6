/**
 * A browser with a page. `crates/cli/tests/page.rs` runs the server, whose agents are all `agent.mjs`, and sets these variables:
 *
 *   TOWLINE_DESK          an address that ends (`/kill`) and starts (`/start`) the server, and has links that sign in (`/sign-in`)
 *   TOWLINE_REPOSITORY    a git repository with one commit, for new goals
 *   TOWLINE_SCREENSHOTS   a folder for screenshots
 *   TOWLINE_CHROMIUM      the browser (default: /usr/bin/chromium)
 */

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { expect, type TestContext } from 'vitest';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

export interface Desk {
  browser: Browser;
  context: BrowserContext;
  page: Page;
  /** Everything that the browser complained about, and every request to another server than ours. */
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
export const screenshots = (): string => variable('TOWLINE_SCREENSHOTS');

/** Has the program that runs the server do something; a link is returned. */
export async function request(what: 'sign-in' | 'kill' | 'start'): Promise<string> {
  return (await fetch(`${variable('TOWLINE_DESK')}/${what}`)).text();
}

/** A browser that has not signed in. */
export async function openDesk(): Promise<Desk> {
  const link = await request('sign-in');
  const home = new URL('/', link).href;
  const browser = await chromium.launch({ executablePath: process.env.TOWLINE_CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const complaints: string[] = [];
  context.on('request', (sent) => {
    if (!sent.url().startsWith(home) && !sent.url().startsWith('data:')) complaints.push(`a request to ${sent.url().slice(0, 200)}`);
  });
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  context.on('weberror', (error) => complaints.push(String(error.error().stack)));
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return { browser, context, page, complaints, link, home };
}

/** The same, signed in. */
export async function openSignedIn(): Promise<Desk> {
  const desk = await openDesk();
  await desk.page.goto(desk.link);
  await desk.page.locator('header').waitFor();
  return desk;
}

/** After each test: nobody complained. A test that failed leaves a picture of the page. */
export async function inspect(desk: Desk, context: TestContext): Promise<void> {
  const { name, result } = context.task;
  if (result?.state === 'fail') await desk.page.screenshot({ path: `${screenshots()}/failed: ${name.replaceAll('/', ' ')}.png` });
  else expect(desk.complaints).toEqual([]);
  desk.complaints.splice(0);
}

/** Sends a request with the session of the page. */
export async function send(page: Page, method: string, path: string, body?: unknown): Promise<{ status: number; json: any }> {
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
  const { status, json } = await send(page, 'POST', '/goals', {
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
    const { violations } = await (globalThis as any).axe.run(document, { resultTypes: ['violations'], rules: { 'label-content-name-mismatch': { enabled: true } } });
    const severe = violations.filter((one: any) => one.impact === 'serious' || one.impact === 'critical');
    return severe.map((one: any) => `${one.id}: ${one.nodes.map((node: any) => node.html.slice(0, 120)).slice(0, 3).join(' | ')}`);
  });
}
