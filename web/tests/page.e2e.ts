import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGoal, openDesk, repository, request, shots, violations, type Desk } from './browser';

let desk: Desk;
const goals: Record<string, string> = {};
const short = (id: string): string => id.replaceAll('-', '').slice(-8);
const open = (path: string): Promise<unknown> => desk.page.goto(`${desk.home}#${path}`);

beforeAll(async () => {
  desk = await openDesk();
});
afterAll(async () => {
  await desk?.browser.close();
});
afterEach(() => {
  expect(desk.complaints.splice(0)).toEqual([]);
});

describe('the page', () => {
  it('shows how to sign in to somebody without a session', async () => {
    await desk.page.goto(desk.home);
    await desk.page.getByText('towline open').waitFor();
  });

  it('signs in with a link, which leaves the address bar and works once', async () => {
    await desk.page.goto(desk.link);
    await desk.page.locator('header').waitFor();
    expect(desk.page.url()).toBe(desk.home);
    const other = await desk.browser.newContext();
    const second = await other.newPage();
    await second.goto(desk.link);
    await second.getByRole('alert').waitFor();
    expect(second.url()).toBe(desk.home);
    await other.close();
  });

  it('creates a goal, and shows what was typed after a reload', async () => {
    await open('/new');
    await desk.page.getByLabel('Project').fill(repository());
    await desk.page.getByLabel('Task').fill('Work on the file');
    await desk.page.getByLabel('Check 1').fill('test -f work.txt');
    await desk.page.getByLabel('Dollars').fill('100');
    await desk.page.reload();
    await desk.page.getByText('Costs at most $100.00').waitFor();
    await desk.page.getByLabel('works', { exact: true }).check();
    await desk.page.getByRole('button', { name: 'Create the goal' }).click();
    await desk.page.getByRole('heading', { name: 'Work on the file' }).waitFor();
    goals.works = /goal\/([0-9a-f-]+)/.exec(desk.page.url())?.[1] ?? '';
  });

  it('answers a question and allows a command from the list, and counts both in the title', async () => {
    await open('/');
    goals.asks = await createGoal(desk.page, 'asks', 'Ask for a colour');
    goals.permit = await createGoal(desk.page, 'permit', 'Ask for permission');
    await desk.page.waitForFunction(() => document.title.startsWith('(2) '));
    const inbox = desk.page.locator('#inbox');
    await inbox.getByRole('button', { name: 'blue' }).click();
    await inbox.getByRole('button', { name: 'Allow once' }).click();
    for (const id of [goals.asks, goals.permit]) await desk.page.locator(`[data-goal="${id}"]`, { hasText: 'done' }).waitFor();
    await desk.page.waitForFunction(() => document.title === 'Towline');
  });

  it('shows what an agent prints as text and nothing else', async () => {
    await open(`/goal/${goals.works}`);
    const log = desk.page.getByRole('feed');
    await log.getByText('The work is done.').first().waitFor();
    const message = log.locator('.message').first();
    expect(await message.innerText()).toMatch(/<img src=x .*<b>not bold<\/b> red ⟨U\+202E⟩gnp.exe⟨U\+202C⟩ (⟨U\+0007⟩)? javascript:alert\(1\)/);
    expect(await desk.page.locator('main b, main img, main script').count()).toBe(0);
    const links = await message.locator('a').evaluateAll((all) => all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]));
    expect(links).toEqual([['https://example.org/page', 'noopener noreferrer nofollow']]);
    await log.getByRole('button', { name: 'Bash' }).click();
    await log.getByRole('button', { name: /Show more/ }).first().waitFor();
    await log.getByRole('button', { name: /Show the raw record/ }).click();
    await log.getByText('tool_use_id').waitFor();
    await desk.page.getByRole('button', { name: 'passed in attempt 1' }).waitFor();
  });

  it('takes comments on lines, keeps them and ticks, and merges after a look', async () => {
    await open(`/goal/${short(goals.works ?? '')}/review`);
    const file = desk.page.getByRole('region', { name: 'work.txt' });
    await file.getByRole('button', { name: 'Comment on line 1' }).hover();
    await desk.page.mouse.down();
    await file.getByRole('button', { name: 'Comment on line 2' }).hover();
    await desk.page.mouse.up();
    await file.getByLabel('New comment on 2 lines').fill('One line is enough.');
    await file.getByRole('button', { name: 'Add comment' }).click();
    await file.getByLabel('Reviewed').check();
    await desk.page.getByText('1 file, 1 reviewed').waitFor();
    await desk.page.reload();
    await desk.page.getByText('1 file, 1 reviewed').waitFor();
    await file.getByRole('button', { name: 'work.txt' }).click();
    expect(await file.getByLabel('Comment on line 2', { exact: true }).last().inputValue()).toBe('One line is enough.');
    await desk.page.getByRole('button', { name: 'Start a follow-up goal' }).click();
    expect(await desk.page.getByLabel('Task').inputValue()).toMatch(/^Follow up on .*\n\nwork.txt:1-2\n> \+line one\n> \+line two\nOne line is enough.$/);
    await desk.page.getByLabel('works', { exact: true }).check();
    await desk.page.getByRole('button', { name: 'Create the goal' }).click();
    await desk.page.locator('main .chip', { hasText: /done|unproven/ }).waitFor();
    await open(`/goal/${goals.works}/review`);
    await file.waitFor();
    await desk.page.keyboard.press('m');
    const merge = desk.page.getByRole('button', { name: /^Merge 1 file into/ });
    await merge.waitFor();
    let plans = 0;
    desk.page.on('request', (request) => { if (request.url().endsWith('/merge')) plans++; });
    await desk.page.getByLabel('Message (optional)').pressSequentially('Two lines');
    expect(plans).toBe(0);
    await merge.click();
    await desk.page.getByText('The branch is at').waitFor();
    await desk.page.getByRole('button', { name: 'Done' }).click();
    await desk.page.getByText('merged into').first().waitFor();
    expect(await desk.page.getByRole('button', { name: 'Merge…' }).count()).toBe(0);
  });

  it('shows the message that an agent writes, and steers it', async () => {
    goals.long = await createGoal(desk.page, 'long', 'Work for long');
    await open(`/goal/${goals.long}`);
    await desk.page.getByLabel('Being written').waitFor();
    await desk.page.getByRole('feed').getByText('Round 1 of').waitFor();
    await desk.page.keyboard.press('t');
    await desk.page.keyboard.type('not so fast');
    await desk.page.reload();
    const field = desk.page.getByLabel('Message to the agent');
    await field.waitFor();
    expect(await field.inputValue()).toBe('not so fast');
    await desk.page.getByRole('button', { name: 'Send' }).click();
    await desk.page.getByRole('feed').locator('.told', { hasText: 'not so fast' }).waitFor();
  });

  it('clears a tick when the file changes', async () => {
    await open(`/goal/${goals.long}/review`);
    const file = desk.page.getByRole('region', { name: 'work.txt' });
    await file.getByLabel('Reviewed').check();
    await desk.page.getByText('1 file, 0 reviewed').waitFor();
    expect(await file.getByLabel('Reviewed').isChecked()).toBe(false);
  });

  it('pauses, resumes and cancels', async () => {
    await open(`/goal/${goals.long}`);
    const main = desk.page.locator('main');
    await main.getByRole('button', { name: 'Pause' }).click();
    await main.getByRole('button', { name: 'Resume' }).click();
    await main.locator('.chip', { hasText: 'running' }).waitFor();
    await main.getByRole('button', { name: 'Cancel…' }).click();
    await desk.page.getByRole('button', { name: 'Cancel the goal' }).click();
    await main.locator('.chip', { hasText: 'cancelled' }).waitFor();
  });

  it('has one stream for all tabs, and the next tab goes on with it', async () => {
    await open('/');
    const second = await desk.context.newPage();
    let streams = 0;
    second.on('request', (sent) => { if (sent.url().endsWith('/api/v1/events')) streams++; });
    await second.goto(desk.home);
    await second.locator('[data-row]').first().waitFor();
    expect(streams).toBe(0);
    const taken = second.waitForRequest((sent) => sent.url().endsWith('/api/v1/events'));
    await desk.page.goto('about:blank');
    await taken;
    const id = await createGoal(second, 'works', 'Added while another tab follows');
    await second.locator(`[data-goal="${id}"]`, { hasText: 'done' }).waitFor();
    await second.close();
    await open('/');
  });

  it('shows a lost connection, and what happened meanwhile when it is back', async () => {
    await desk.page.locator('[data-row]').first().waitFor();
    const session = await desk.page.evaluate(() => localStorage.getItem('towline.session'));
    await desk.context.setOffline(true);
    await desk.page.getByText('Connection lost.').waitFor();
    await desk.page.locator('#search').fill('meanwhile');
    // Not from the browser, which is offline.
    const created = await fetch(`${desk.home}api/v1/goals`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${session}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ prompt: 'Added meanwhile', repository: repository(), agents: ['works'], checks: ['test -f work.txt'] }),
    });
    expect(created.status).toBe(201);
    await desk.context.setOffline(false);
    await desk.page.getByText('Connection lost.').waitFor({ state: 'detached' });
    await desk.page.locator('[data-row]', { hasText: 'Added meanwhile' }).waitFor();
    expect(await desk.page.locator('#search').inputValue()).toBe('meanwhile');
    desk.complaints.splice(0);
  });

  it('is used with the keyboard', async () => {
    await open('/');
    await desk.page.locator('[data-row]').first().waitFor();
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

  const views = { board: '/', goal: '/goal/WORKS', review: '/goal/WORKS/review', attempts: '/goal/WORKS/attempts', new: '/new', cost: '/cost' };
  for (const [name, path] of Object.entries(views)) {
    it(`has no serious barrier in the view ${name}, light, dark and on a phone`, async () => {
      if (name === 'board') goals.open = await createGoal(desk.page, 'asks', 'A question that stays open');
      await open(path.replace('WORKS', goals.works ?? ''));
      await desk.page.locator('h1').waitFor();
      if (name === 'board') await desk.page.locator('#inbox').waitFor();
      if (name === 'review') await desk.page.getByRole('region', { name: 'work.txt' }).getByLabel('Reviewed').uncheck();
      for (const [look, colorScheme, width] of [['light', 'light', 1280], ['dark', 'dark', 1280], ['phone', 'light', 390]] as const) {
        await desk.page.emulateMedia({ colorScheme });
        await desk.page.setViewportSize({ width, height: 844 });
        expect(await violations(desk.page), look).toEqual([]);
        const overflow = await desk.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(overflow, `${look}: wider than the screen`).toBeLessThanOrEqual(0);
        if (shots !== undefined) await desk.page.screenshot({ path: `${shots}/${name}-${look}.png` });
      }
      await desk.page.setViewportSize({ width: 1280, height: 860 });
    });
  }

  it('signs out', async () => {
    if (goals.open) await request(desk.page, 'POST', `/goals/${goals.open}/cancel`);
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
