import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGoal, inspect, openDesk, repository, send, type Desk } from './browser';

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
afterEach((context) => inspect(desk, context));

describe('a goal on the page', () => {
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
    await desk.page.getByRole('button', { name: 'Clear' }).click();
    expect(await desk.page.getByRole('textbox', { name: 'Task' }).inputValue()).toBe('');
    await desk.page.getByRole('button', { name: 'Undo' }).click();
    await desk.page.getByText('Costs at most $100.00').waitFor();
    await desk.page.getByLabel('Project').fill('webshop');
    await desk.page.getByRole('button', { name: 'Create the goal' }).click();
    await desk.page.getByText('Project: it must be an absolute path').waitFor();
    // The browser names the request that was refused.
    desk.complaints.splice(0);
    await desk.page.getByLabel('Project').fill(repository());
    expect(await desk.page.getByText('Project: it must be').count()).toBe(0);
    await desk.page.getByLabel('works', { exact: true }).check();
    await desk.page.getByRole('button', { name: 'Create the goal' }).click();
    await desk.page.getByRole('heading', { name: 'Work on the file' }).waitFor();
    goals.works = /goal\/([0-9a-f-]+)/.exec(desk.page.url())?.[1] ?? '';
  });

  it('answers a question, allows and denies a command from the list, and counts them in the title', async () => {
    await open('/');
    goals.asks = await createGoal(desk.page, 'asks', 'Ask for a colour');
    goals.permit = await createGoal(desk.page, 'permit', 'Ask for permission');
    await desk.page.waitForFunction(() => document.title.startsWith('(2) '));
    goals.deny = await createGoal(desk.page, 'permit', 'Ask in vain');
    await desk.page.waitForFunction(() => document.title.startsWith('(3) '));
    const item = (title: string) => desk.page.locator('#inbox .item', { hasText: title });
    await item('Ask for a colour').getByRole('button', { name: 'blue' }).click();
    await item('Ask for a colour').waitFor({ state: 'detached' });
    expect(await item('Ask for permission').locator('.command').innerText()).toContain('rm -rf build ⟨U+001B⟩]; rm -rf src');
    // What the second click of a double click would hit.
    const allow = item('Ask for permission').getByRole('button', { name: 'Allow once' });
    const box = await allow.boundingBox();
    const hit = desk.page.evaluate(([x = 0, y = 0]) => new Promise((resolve) => {
      const look = (): void => resolve(document.elementFromPoint(x, y)?.closest('button')?.textContent ?? 'no button');
      new MutationObserver(look).observe(document.querySelector('#inbox ul') ?? document, { childList: true });
    }), [(box?.x ?? 0) + 5, (box?.y ?? 0) + 5]);
    await allow.click();
    expect(await hit).toBe('no button');
    await item('Ask in vain').getByLabel('What the agent should do instead').fill('Keep the folder.');
    await item('Ask in vain').getByRole('button', { name: 'Deny' }).click();
    for (const id of [goals.asks, goals.permit, goals.deny]) await desk.page.locator(`[data-goal="${id}"]`, { hasText: 'done' }).waitFor();
    await desk.page.waitForFunction(() => document.title === 'Towline');
  });

  it('shows that the agents continued with the answers', async () => {
    const heard = { asks: 'The answer is {"Which colour?":"blue"}.', permit: 'The decision is allow.', deny: 'Keep the folder.' };
    for (const [name, text] of Object.entries(heard)) {
      await open(`/goal/${goals[name]}`);
      await desk.page.locator('.message', { hasText: text }).waitFor();
    }
    await desk.page.locator('.message', { hasText: 'The decision is deny.' }).waitFor();
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
    // The field for one line moves nothing while a button of the mouse is down.
    await file.getByRole('button', { name: 'Comment on line 1' }).click();
    await file.getByLabel('New comment on 1 line').fill('Kept');
    await file.getByRole('button', { name: 'Comment on line 3' }).click({ modifiers: ['Shift'] });
    expect(await file.getByLabel('New comment on 3 lines').inputValue()).toBe('Kept');
    await file.getByRole('button', { name: 'Discard' }).click();
    await file.getByRole('button', { name: 'Comment on line 1' }).hover();
    await desk.page.mouse.down();
    await file.getByRole('button', { name: 'Comment on line 2' }).hover();
    await desk.page.mouse.up();
    await file.getByLabel('New comment on 2 lines').fill('One line is enough.');
    // The second click hits nothing.
    await file.getByRole('button', { name: 'Add comment' }).dblclick();
    await file.getByText('Not sent yet.').waitFor();
    await file.getByLabel('Reviewed').check();
    await desk.page.getByText('1 file, 1 reviewed').waitFor();
    await desk.page.reload();
    await desk.page.getByText('1 file, 1 reviewed').waitFor();
    await file.getByRole('button', { name: 'work.txt' }).click();
    expect(await file.getByLabel('Comment on line 2', { exact: true }).last().inputValue()).toBe('One line is enough.');
    await desk.page.getByRole('button', { name: 'Start a follow-up goal' }).click();
    expect(await desk.page.getByRole('textbox', { name: 'Task' }).inputValue()).toMatch(/^Follow up on .*\n\nwork.txt:1-2\n> \+line one\n> \+line two\nOne line is enough.$/);
    // The checks and the agent of the goal are there already.
    expect(await desk.page.getByLabel('Check 1').inputValue()).toBe('test -f work.txt');
    expect(await desk.page.getByLabel('works', { exact: true }).isChecked()).toBe(true);
    await desk.page.getByRole('button', { name: 'Create the goal' }).click();
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor();
    await open('/');
    const card = desk.page.locator(`[data-goal="${goals.works}"]`);
    await card.getByText('1 commit ahead of main').waitFor();
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
    await open('/');
    await card.getByText('merged into').waitFor();
    expect(await card.getByText('ahead of').count()).toBe(0);
  });

  it('shows a conflict, and starts a goal that resolves it', async () => {
    const { page } = desk;
    const [mine, theirs] = [await createGoal(page, 'hears', 'Write mine'), await createGoal(page, 'hears', 'Write theirs')];
    await open(`/goal/${mine}`);
    await page.locator('main .chip', { hasText: 'done' }).waitFor();
    expect((await send(page, 'POST', `/goals/${mine}/merge`, {})).status).toBe(200);
    await open(`/goal/${theirs}`);
    await page.locator('main .chip', { hasText: 'done' }).waitFor();
    await page.getByRole('button', { name: 'Merge…' }).click();
    const conflict = page.getByRole('alert').filter({ hasText: 'changed the same places' });
    await conflict.getByText('work.txt').waitFor();
    const { candidate } = (await send(page, 'GET', `/goals/${theirs}`)).json;
    await conflict.getByText(`git switch main && git merge ${candidate.slice(0, 12)}`).waitFor();
    // The browser names the plan that was refused.
    desk.complaints.splice(0);
    await conflict.getByRole('button', { name: 'Start a goal that resolves it' }).click();
    expect(await page.getByRole('textbox', { name: 'Task' }).inputValue()).toBe(`merge ${candidate.slice(0, 12)} and resolve the conflicts`);
    expect(await page.getByLabel('hears', { exact: true }).isChecked()).toBe(true);
  });
});
