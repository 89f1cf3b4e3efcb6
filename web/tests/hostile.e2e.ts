import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGoal, inspect, openSignedIn, send, type Desk } from './browser';

let desk: Desk;

beforeAll(async () => {
  desk = await openSignedIn();
});
afterAll(async () => {
  await desk?.browser.close();
});
afterEach((context) => inspect(desk, context));

const POLICY = {
  'default-src': "'none'", 'script-src': "'self'", 'style-src': "'self'", 'img-src': "'self' data:", 'connect-src': "'self'",
  'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'",
};

describe('a hostile world', () => {
  it('gets a policy without inline scripts, and the browser enforces it', async () => {
    const reply = await desk.page.request.get(desk.home);
    const directives = (reply.headers()['content-security-policy'] ?? '').split(';').map((directive) => directive.trim());
    expect(Object.fromEntries(directives.map((directive) => [directive.split(' ')[0], directive.slice(directive.indexOf(' ') + 1)]))).toEqual(POLICY);
    expect(reply.headers()).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer' });
    expect(reply.headers()['set-cookie']).toBeUndefined();
    let asked = 0;
    const other = createServer((_, answer) => { asked++; answer.end(); }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    await desk.page.evaluate((port) => {
      const script = document.createElement('script');
      script.textContent = 'document.body.dataset.ran = "yes"';
      document.body.append(script);
      const image = document.createElement('img');
      image.src = `http://127.0.0.1:${port}/pixel.png`;
      document.body.append(image);
      void fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    }, (other.address() as AddressInfo).port);
    await expect.poll(() => desk.complaints.filter((text) => text.includes('Content Security Policy')).length).toBeGreaterThanOrEqual(3);
    expect(await desk.page.evaluate(() => document.body.dataset.ran)).toBeUndefined();
    expect(asked).toBe(0);
    other.close();
    desk.complaints.splice(0);
  });

  it('with a spent or a wrong link sees nothing', async () => {
    const wrong = desk.link.replace(/code=.*/, `code=${'A'.repeat(43)}`);
    for (const link of [desk.link, wrong, `${desk.home}#code=`, `${desk.home}#code=%3Cb%3E`, `${desk.home}#/cost`, desk.home]) {
      const context = await desk.browser.newContext();
      const page = await context.newPage();
      const refused: number[] = [];
      page.on('response', (reply) => { if (reply.url().includes('/api/')) refused.push(reply.status()); });
      await page.goto(link);
      await page.locator('code', { hasText: 'towline open' }).waitFor();
      if (link.includes('code=A') || link === desk.link) await page.getByRole('alert').getByText('The link is not valid').waitFor();
      expect(refused.every((status) => status === 401 || status === 403 || status === 400 || status === 429), `${link}: ${refused}`).toBe(true);
      expect(await page.locator('header, [data-row], #inbox').count()).toBe(0);
      expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('session');
      expect(page.url()).not.toMatch(/code=[\w-]{20}/);
      await context.close();
    }
    expect((await fetch(`${desk.home}api/v1/goals`)).status).toBe(401);
  });

  it('floods the page with lines of 10 MB, which stay harmless and leave it quick', async () => {
    const id = await createGoal(desk.page, 'floods', 'Flood the page');
    await desk.page.goto(`${desk.home}#/goal/${id}`);
    const log = desk.page.getByRole('feed');
    await log.getByText('It is flooded.').waitFor({ timeout: 60_000 });
    await desk.page.locator('main .chip', { hasText: 'done' }).waitFor({ timeout: 60_000 });
    await log.getByRole('button', { name: 'Bash' }).click();
    await log.getByRole('button', { name: /Show the raw record/ }).first().waitFor();
    const shown = await desk.page.evaluate(() => document.body.innerText.length);
    expect(shown).toBeLessThan(100_000);
    const begun = Date.now();
    await desk.page.keyboard.press('b');
    await desk.page.locator('[data-row]').first().waitFor();
    expect(Date.now() - begun).toBeLessThan(5_000);
    expect(await desk.page.locator('main b, main img, main script, main iframe').count()).toBe(0);
  });

  it('names goals and asks questions with markup, directions and escape sequences', async () => {
    const title = '<img src=x onerror=alert(1)> \u202eevil\u202c \u001b[31mred\u001b[0m';
    const id = await createGoal(desk.page, 'works', title, { checks: ['<b>x</b>; test -f work.txt'] });
    await desk.page.goto(`${desk.home}#/`);
    const row = desk.page.locator(`[data-goal="${id}"]`);
    await row.waitFor();
    expect(await row.locator('.title').innerText()).toMatch(/^<img src=x onerror=alert\(1\)> ⟨U\+202E⟩evil⟨U\+202C⟩ red$/);
    expect(await desk.page.title()).not.toMatch(/\u202e|\u001b/);
    await desk.page.goto(`${desk.home}#/goal/${id}`);
    await desk.page.locator('h1').waitFor();
    expect(await desk.page.title()).not.toMatch(/\u202e|\u001b/);
    expect(await desk.page.locator('main b, main img').count()).toBe(0);
    await send(desk.page, 'POST', `/goals/${id}/cancel`);
  });

  it('reports a session that the server could not end', async () => {
    await desk.context.setOffline(true);
    await desk.page.keyboard.press('Control+k');
    await desk.page.keyboard.type('sign out');
    await desk.page.keyboard.press('Enter');
    await desk.page.getByRole('alert').getByText('towline open --sign-out').waitFor();
    await desk.context.setOffline(false);
    desk.complaints.splice(0);
  });
});
