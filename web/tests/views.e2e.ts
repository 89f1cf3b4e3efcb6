import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { createGoal, inspect, openSignedIn, repository, request, screenshots, send, violations, type Desk } from './browser';

let desk: Desk;
const goals: Record<string, string> = {};
const open = (path: string): Promise<unknown> => desk.page.goto(`${desk.home}#${path}`);

beforeAll(async () => {
  desk = await openSignedIn();
});
afterAll(async () => {
  await desk?.browser.close();
});
afterEach((context) => inspect(desk, context));

/** Presses Tab until the focus is on what has this name. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let press = 0; press < 80; press++) {
    await page.keyboard.press('Tab');
    const named = await page.evaluate(() => {
      const focused = document.activeElement as HTMLInputElement | null;
      const label = focused?.getAttribute('aria-label') ?? focused?.labels?.[0]?.textContent ?? focused?.textContent ?? '';
      return label.trim();
    });
    if (named.startsWith(name)) return;
  }
  throw new Error(`the keyboard does not reach ${name}`);
}

describe('the keyboard alone', () => {
  it('moves, searches and shows its keys', async () => {
    await createGoal(desk.page, 'works', 'Fix the rounding of totals');
    await createGoal(desk.page, 'works', 'Paint the fence in one colour');
    await open('/');
    await desk.page.locator('[data-row]').nth(1).waitFor();
    await desk.page.keyboard.press('Escape');
    await desk.page.keyboard.press('j');
    await desk.page.keyboard.press('j');
    await desk.page.keyboard.press('k');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByRole('navigation', { name: 'Parts of the goal' }).waitFor();
    await desk.page.keyboard.press('/');
    await desk.page.keyboard.type('colour');
    await desk.page.waitForFunction(() => location.hash === '#/?q=colour');
    expect(await desk.page.locator('[data-row]').count()).toBe(1);
    await desk.page.keyboard.press('Escape');
    await desk.page.keyboard.press('?');
    await desk.page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await desk.page.keyboard.press('Escape');
    await desk.page.keyboard.press('Control+k');
    await desk.page.keyboard.type('cost and');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByRole('heading', { name: 'Cost and quota' }).waitFor();
  });

  it('creates a goal, answers its question, comments on its diff and merges it', async () => {
    const { keyboard } = desk.page;
    await keyboard.press('n');
    await desk.page.getByRole('heading', { name: 'New goal' }).waitFor();
    await desk.page.getByLabel('asks', { exact: true }).waitFor();
    await tabTo(desk.page, 'Project');
    await keyboard.press('Control+a');
    await keyboard.type(repository());
    await tabTo(desk.page, 'Task');
    await keyboard.type('Choose by keyboard');
    await tabTo(desk.page, 'Check 1');
    await keyboard.type('test -f work.txt');
    await tabTo(desk.page, 'asks');
    await keyboard.press('Space');
    await tabTo(desk.page, 'Create the goal');
    await keyboard.press('Enter');
    await desk.page.getByRole('heading', { name: 'Choose by keyboard' }).waitFor();
    await desk.page.locator('[data-answer]').first().waitFor();
    await keyboard.press('a');
    await keyboard.type('green');
    await keyboard.press('Enter');
    await desk.page.locator('.message', { hasText: 'green' }).waitFor();
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor();
    await tabTo(desk.page, 'Review');
    await keyboard.press('Enter');
    await desk.page.getByRole('region', { name: 'work.txt' }).waitFor();
    await tabTo(desk.page, 'Lines of work.txt');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await desk.page.getByLabel('New comment on 1 line').waitFor();
    await keyboard.type('Which green?');
    await tabTo(desk.page, 'Add comment');
    await keyboard.press('Enter');
    await desk.page.getByText('1 comment', { exact: true }).waitFor();
    await keyboard.press('Escape');
    // Keys rest after the field for the comment has gone, until nobody has typed for a second.
    const merge = desk.page.getByRole('button', { name: /^Merge 1 file into/ });
    await expect.poll(async () => {
      await keyboard.press('m');
      return merge.isVisible();
    }, { timeout: 15_000, interval: 1_500 }).toBe(true);
    await tabTo(desk.page, 'Merge 1 file into');
    await keyboard.press('Enter');
    await desk.page.getByText('The branch is at').waitFor();
    await keyboard.press('Escape');
    await desk.page.getByText('merged into').first().waitFor();
  });
});

const LOOKS = [['light', 'light', 1280], ['dark', 'dark', 1280], ['phone', 'light', 390], ['phone-dark', 'dark', 390]] as const;

/** Looks at a view as different people do: no serious barrier, nothing wider than the screen, and a picture of each. */
async function look(page: Page, name: string): Promise<void> {
  for (const [as, colorScheme, width] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    expect(await violations(page), as).toEqual([]);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, `${as}: wider than the screen`).toBeLessThanOrEqual(0);
    await page.screenshot({ path: `${screenshots()}/${name}-${as}.png` });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 860 });
}

describe('every view, light, dark and on a phone', () => {
  it('has goals to show', async () => {
    const { page } = desk;
    goals.long = await createGoal(page, 'long', 'Rewrite the import of orders as a stream');
    goals.mends = await createGoal(page, 'mends', 'Keep the sort order of equal prices stable', { checks: ['grep -q mended sort.txt', 'test -f sort.txt'] });
    goals.works = await createGoal(page, 'works', 'Show amounts in the currency of the customer');
    goals.fails = await createGoal(page, 'hears', 'Make the search twice as fast', { checks: ["grep -q 'faste[r]' work.txt"], budget: { attempts: 1 } });
    goals.asks = await createGoal(page, 'asks', 'Add a banner for the summer sale');
    goals.permit = await createGoal(page, 'permit', 'Remove what the old build has left');
    await createGoal(page, 'works', 'Translate the banner', { after: [{ goal: goals.asks, need: 'merged' }] });
    await open('/');
    for (const [name, phase] of Object.entries({ mends: 'done', works: 'done', fails: 'failed', asks: 'answer', permit: 'answer', long: 'running' })) {
      await page.locator(`[data-goal="${goals[name]}"]`, { hasText: phase }).waitFor();
    }
  });

  it('sign-in', async () => {
    const context = await desk.browser.newContext();
    const page = await context.newPage();
    await page.goto(desk.home);
    await page.getByText('towline open').waitFor();
    await look(page, 'sign-in');
    await context.close();
  });

  it('inbox', async () => {
    await open('/');
    await desk.page.locator('#inbox .item').nth(1).waitFor();
    await look(desk.page, 'inbox');
  });

  const views = { board: '/', goal: '/goal/LONG', checks: '/goal/MENDS', review: '/goal/WORKS/review', attempts: '/goal/MENDS/attempts', new: '/new', cost: '/cost' };
  for (const [name, path] of Object.entries(views)) {
    it(name, async () => {
      await open(path.replace(/[A-Z]+/, (word) => goals[word.toLowerCase()] ?? ''));
      await desk.page.locator('h1').waitFor();
      if (name === 'board') await desk.page.locator('#inbox').getByRole('button', { name: 'Hide' }).click();
      if (name === 'goal') await desk.page.getByRole('feed').getByText('Round 1 of').waitFor();
      if (name === 'checks') await desk.page.getByRole('button', { name: 'passed in attempt 2' }).first().waitFor();
      if (name === 'review') await desk.page.getByRole('region', { name: 'work.txt' }).waitFor();
      if (name === 'attempts') await desk.page.getByText('Attempt 2').waitFor();
      if (name === 'new') await desk.page.getByLabel('works', { exact: true }).waitFor();
      if (name === 'cost') await desk.page.getByText('Spent:').waitFor();
      await look(desk.page, name);
    });
  }

  it('answers with two taps on a phone', async () => {
    const context = await desk.browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(await request('sign-in'));
    await page.locator('header').getByRole('button', { name: '3 need you' }).waitFor();
    await page.locator('#inbox').getByRole('button', { name: 'red' }).tap();
    await page.locator('#inbox').getByRole('button', { name: 'Allow once' }).tap();
    await page.locator('header').getByRole('button', { name: '1 needs you' }).waitFor();
    for (const id of [goals.asks, goals.permit]) await page.locator(`[data-goal="${id}"]`, { hasText: 'done' }).waitFor();
    await context.close();
  });
});

describe('the end', () => {
  it('signs out', async () => {
    if (goals.long) await send(desk.page, 'POST', `/goals/${goals.long}/cancel`);
    await open('/');
    await desk.page.keyboard.press('Control+k');
    await desk.page.keyboard.type('sign out');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByText('towline open').waitFor();
    expect(await desk.page.evaluate(() => localStorage.getItem('towline.session'))).toBeNull();
    // A request that was under way may be refused by now.
    desk.complaints.splice(0);
  });
});
