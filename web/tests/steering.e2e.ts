import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGoal, inspect, openSignedIn, repository, request, send, type Desk } from './browser';

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

describe('steering', () => {
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
    await desk.page.getByRole('feed').locator('.message', { hasText: 'I was told: not so fast' }).waitFor();
  });

  it('clears a tick when the file changes', async () => {
    await open(`/goal/${goals.long}/review`);
    const file = desk.page.getByRole('region', { name: 'work.txt' });
    await file.getByLabel('Reviewed').check();
    await desk.page.getByText('1 file, 0 reviewed').waitFor();
    await file.getByText('changed since you reviewed it').waitFor();
    expect(await file.getByLabel('Reviewed').isChecked()).toBe(false);
  });

  it('keeps the lines that a comment is written on while the file changes', async () => {
    const file = desk.page.getByRole('region', { name: 'work.txt' });
    // The tick has folded it.
    await file.getByRole('button', { name: 'work.txt' }).click();
    await file.getByRole('button', { name: 'Comment on line 1', exact: true }).click();
    const line = await file.locator('.line .text').first().innerText();
    await file.getByLabel(/^New comment/).fill('Why so slow?');
    await file.getByText('The file has changed since you chose these lines.').waitFor();
    await file.getByRole('button', { name: 'Add comment' }).click();
    await file.getByText('On an earlier version of work.txt:1').waitFor();
    const saved = await desk.page.evaluate((id) => localStorage.getItem(`towline.review.${id}`), goals.long);
    expect(JSON.parse(saved ?? '').comments).toMatchObject([{ quote: [`+${line}`], text: 'Why so slow?' }]);
  });

  it('closes the dialogs of a goal when another one is opened', async () => {
    const other = await createGoal(desk.page, 'works', 'Another goal');
    await open(`/goal/${other}`);
    await desk.page.getByRole('heading', { name: 'Another goal' }).waitFor();
    await open(`/goal/${goals.long}`);
    await desk.page.locator('main').getByRole('button', { name: 'Cancel…' }).click();
    await desk.page.getByRole('dialog', { name: 'Cancel this goal?' }).getByText('Work for long').waitFor();
    await desk.page.goBack();
    await desk.page.getByRole('heading', { name: 'Another goal' }).waitFor();
    expect(await desk.page.getByRole('dialog').count()).toBe(0);
  });

  it('pauses, resumes and cancels', async () => {
    await open(`/goal/${goals.long}`);
    const main = desk.page.locator('main');
    await main.getByRole('button', { name: 'Pause' }).click();
    await main.getByRole('button', { name: 'Resume' }).click();
    await main.locator('.chip', { hasText: 'running' }).waitFor();
    await desk.page.keyboard.press('Control+k');
    await desk.page.keyboard.type('cancel this goal');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByRole('button', { name: 'Cancel the goal' }).click();
    await main.locator('.chip', { hasText: 'cancelled' }).waitFor();
    await main.getByText('cancelled').nth(1).waitFor();
    expect(await main.locator('.state', { hasText: 'running' }).count()).toBe(0);
  });

  it('sends no answer to another question than the one that was being answered', async () => {
    const { page } = desk;
    const first = await createGoal(page, 'asks', 'Ask first');
    const item = (title: string) => page.locator('#inbox .item', { hasText: title });
    await open('/');
    await item('Ask first').waitFor();
    const second = await createGoal(page, 'asks', 'Ask second');
    await item('Ask second').waitFor();
    const field = item('Ask first').getByLabel('Your answer');
    await page.keyboard.press('a');
    await page.keyboard.type('gre');
    await send(page, 'POST', `/goals/${first}/answer`, { text: 'blue', question: 1 });
    await item('Ask first').getByText('Answered elsewhere: blue. Your text was not sent.').waitFor();
    await page.keyboard.type('y and a bit');
    await page.keyboard.press('Enter');
    expect(await field.inputValue()).toBe('grey and a bit');
    expect(await item('Ask second').getByLabel('Your answer').inputValue()).toBe('');
    expect((await send(page, 'GET', `/goals/${second}`)).json.phase).toBe('blocked');
    expect(await page.evaluate((id) => localStorage.getItem(`towline.draft.answer.${id}.1`), first)).toBe('grey and a bit');
    await page.waitForFunction(() => document.title.startsWith('(1) '));
    await item('Ask first').getByRole('button', { name: 'Discard' }).click();
    await item('Ask first').waitFor({ state: 'detached' });
    // Whoever types on does not start something else.
    await page.keyboard.type('nab');
    expect(await page.evaluate(() => [location.hash, document.activeElement?.tagName])).toEqual(['#/', 'BODY']);
    await item('Ask second').getByRole('button', { name: 'red' }).click();
    await item('Ask second').waitFor({ state: 'detached' });
  });

  it('keeps the message that is being written when the goal ends', async () => {
    const { page } = desk;
    const id = await createGoal(page, 'long', 'End while somebody writes');
    await open(`/goal/${id}`);
    await page.getByRole('feed').getByText('Round 1 of').waitFor();
    await page.keyboard.press('t');
    await page.keyboard.type('try the ');
    await send(page, 'POST', `/goals/${id}/cancel`);
    await page.getByText('The goal has ended. Your message was not sent.').waitFor();
    await page.keyboard.type('nearest one');
    const field = page.getByLabel('Message to the agent');
    expect(await field.inputValue()).toBe('try the nearest one');
    expect(await page.evaluate((goal) => localStorage.getItem(`towline.draft.tell.${goal}`), id)).toBe('try the nearest one');
    await page.getByRole('button', { name: 'Discard' }).click();
    await field.waitFor({ state: 'detached' });
  });

  it('shows a check that turns from red to green', async () => {
    const id = await createGoal(desk.page, 'mends', 'Mend the file', { checks: ['grep -q mended sort.txt'] });
    await open(`/goal/${id}`);
    const checks = desk.page.getByRole('region', { name: 'Results of the checks' });
    await checks.getByRole('button', { name: 'failed in attempt 1' }).waitFor();
    await checks.getByRole('button', { name: 'passed in attempt 2' }).waitFor();
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor();
    const log = desk.page.getByRole('feed');
    expect(await log.locator('.check .state').allInnerTexts()).toEqual([expect.stringMatching(/^failed/), expect.stringMatching(/^passed/)]);
  });

  it('retries a failed goal with the comments on its diff, which reach the agent', async () => {
    const id = await createGoal(desk.page, 'hears', 'Work on the file', { checks: ["grep -q 'politel[y]' work.txt"], budget: { attempts: 1 } });
    await open('/');
    const item = desk.page.locator('#inbox .item', { hasText: 'Work on the file' });
    await item.getByRole('button', { name: 'Retry…' }).waitFor();
    await item.locator('.red code').waitFor();
    await item.getByRole('link', { name: 'Look at it' }).click();
    await desk.page.waitForFunction(() => !document.title.startsWith('('));
    await open(`/goal/${id}/review`);
    const file = desk.page.getByRole('region', { name: 'work.txt' });
    await file.getByRole('button', { name: 'Comment on line 1', exact: true }).click();
    await file.getByLabel(/^New comment/).fill('Say it politely.');
    await file.getByRole('button', { name: 'Add comment' }).click();
    await desk.page.getByRole('button', { name: 'Retry with comments…' }).click();
    await desk.page.getByRole('dialog', { name: 'Retry' }).getByText('The budget of attempts is spent.').waitFor();
    await desk.page.getByRole('dialog', { name: 'Retry' }).getByLabel('Attempts').fill('20');
    await desk.page.getByRole('dialog', { name: 'Retry' }).getByRole('button', { name: 'Retry' }).click();
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor();
    await open(`/goal/${id}`);
    const message = desk.page.locator('.message', { hasText: 'I was told:' }).last();
    await message.getByText('Say it politely.').waitFor();
    expect(await message.innerText()).toMatch(/\bwork\.txt:1\s+> \+/);
  });

  it('retries with a message and a larger budget', async () => {
    const id = await createGoal(desk.page, 'hears', 'Work once more', { checks: ["grep -q 'kindl[y]' work.txt"], budget: { attempts: 1 } });
    await open('/');
    await desk.page.locator('#inbox .item', { hasText: 'Work once more' }).getByRole('button', { name: 'Retry…' }).click();
    const dialog = desk.page.getByRole('dialog', { name: 'Retry' });
    await dialog.getByLabel('Message to the agent').fill('Ask kindly.');
    await dialog.getByLabel('Attempts').fill('20');
    await dialog.getByRole('button', { name: 'Retry' }).click();
    await dialog.waitFor({ state: 'detached' });
    await open(`/goal/${id}`);
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor();
    await desk.page.locator('.message', { hasText: 'Ask kindly.' }).waitFor();
    expect(await desk.page.locator('.told', { hasText: 'Ask kindly.' }).count()).toBe(1);
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
    await desk.page.getByText('The server cannot be reached').waitFor({ state: 'detached' });
    desk.complaints.splice(0);
  });

  it('survives the end of the server: it catches up without gap or double, and keeps what was typed', async () => {
    const id = await createGoal(desk.page, 'long', 'Work while the server is away');
    await open(`/goal/${id}`);
    await desk.page.getByRole('feed').getByText('Round 2 of').waitFor();
    await desk.page.keyboard.press('t');
    await desk.page.keyboard.type('still here');
    await request('kill');
    await desk.page.getByText('Connection lost.').waitFor();
    await request('start');
    await desk.page.getByText('Connection lost.').waitFor({ state: 'detached' });
    const last = await desk.page.locator('.message', { hasText: /Round \d+ of/ }).last().innerText();
    const round = Number(/Round (\d+)/.exec(last)?.[1]);
    await desk.page.getByRole('feed').getByText(`Round ${round + 2} of`).waitFor();
    const rounds = (await desk.page.locator('.message', { hasText: /Round \d+ of/ }).allInnerTexts()).map((text) => Number(/Round (\d+)/.exec(text)?.[1]));
    expect(rounds).toEqual(rounds.map((_, index) => index + (rounds[0] ?? 0)));
    expect(rounds.at(-1)).toBeGreaterThanOrEqual(round + 2);
    expect(await desk.page.getByLabel('Message to the agent').inputValue()).toBe('still here');
    await desk.page.getByRole('button', { name: 'Send' }).click();
    await desk.page.locator('.message', { hasText: 'I was told: still here' }).waitFor();
    const { json } = await send(desk.page, 'GET', `/goals/${id}`);
    expect(json.attempts.length).toBe(1);
    expect((await send(desk.page, 'POST', `/goals/${id}/cancel`)).status).toBe(200);
    await desk.page.locator('main .chip', { hasText: 'cancelled' }).waitFor();
    // The browser names the requests that found no server.
    desk.complaints.splice(0);
  });
});
