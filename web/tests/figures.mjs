/**
 * Measures the page for `cargo bench --package towline-cli --bench page`, which starts the server and has the arguments: a goal whose agent
 * writes, and one with a long log. `TOWLINE_OPEN` is what `towline open --json` printed. Prints one JSON object.
 */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const [crowd, long] = process.argv.slice(2);
const link = JSON.parse(process.env.TOWLINE_OPEN).link;
const home = new URL('/', link).href;
/** How long messages are watched, and how many frames the log scrolls. */
const WATCHED = 15_000;
const FRAMES = 600;

const browser = await chromium.launch({ executablePath: process.env.TOWLINE_CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  page.setDefaultTimeout(60_000);
  await page.goto(link);
  // All agents work before anything is measured.
  await page.waitForFunction(() => document.querySelectorAll('[data-row] .what .mono').length >= 50);

  const load = await measureLoad(page);
  const late = await measureLateness(page);
  const log = await measureLog(page);
  console.log(JSON.stringify({ ...load, ...late, ...log, ...(await measureMemory(page)) }));
} finally {
  await browser.close();
}

/** A first visit of somebody who is signed in. */
async function measureLoad(page) {
  const bodies = [];
  page.on('response', (reply) => {
    if (!reply.url().includes('/api/')) bodies.push(reply.body().catch(() => Buffer.alloc(0)));
  });
  await page.addInitScript(() => {
    const look = () => {
      const row = document.querySelector('[data-row]');
      if (row === null) return void requestAnimationFrame(look);
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true, cancelable: true }));
      window.interactive = document.activeElement === row || document.activeElement?.matches('[data-row]') ? performance.now() : undefined;
      if (window.interactive === undefined) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
  const times = [];
  for (let visit = 0; visit < 5; visit++) {
    bodies.length = 0;
    await page.goto('about:blank');
    await page.goto(home);
    await page.waitForFunction(() => window.interactive !== undefined);
    times.push(await page.evaluate(() => window.interactive));
  }
  const loaded = await Promise.all(bodies);
  const sum = (sizes) => sizes.reduce((a, b) => a + b, 0);
  return { interactive: percentile(times, 0.5), sent: sum(loaded.map((body) => body.length)), compressed: sum(loaded.map((body) => gzipSync(body).length)) };
}

/** How old a message is when it is on the page; the agent writes the time into it. */
async function measureLateness(page) {
  await page.goto(`${home}#/goal/${crowd}`);
  await page.locator('.message').first().waitFor();
  const late = await page.evaluate(
    (watched) =>
      new Promise((resolve) => {
        const seen = new Set();
        const late = [];
        const look = (isFirst) => {
          for (const message of document.querySelectorAll('.message')) {
            const at = /written at (\S+Z)/.exec(message.textContent)?.[1];
            if (at === undefined || seen.has(at)) continue;
            seen.add(at);
            if (!isFirst) late.push(Date.now() - Date.parse(at));
          }
        };
        look(true);
        const observer = new MutationObserver(() => look(false));
        observer.observe(document.body, { childList: true, subtree: true, characterData: true });
        setTimeout(() => { observer.disconnect(); resolve(late); }, watched);
      }),
    WATCHED,
  );
  return { messages: late.length, late: percentile(late, 0.95), lateMedian: percentile(late, 0.5), lateLongest: Math.max(...late) };
}

/** A long log opens from the board, and scrolls towards its beginning. */
async function measureLog(page) {
  await page.goto(`${home}#/`);
  await page.locator('[data-row]').first().waitFor();
  const opens = await page.evaluate(
    (id) =>
      new Promise((resolve) => {
        const begun = performance.now();
        location.hash = `#/goal/${id}`;
        const look = () => (document.querySelector('[role=feed] .entry') ? resolve(performance.now() - begun) : requestAnimationFrame(look));
        look();
      }),
    long,
  );
  await page.getByRole('feed').getByText('Step 99').first().waitFor();
  const frames = await page.evaluate(scrollUp, FRAMES);
  return { opens, frames: frames.length, longestFrame: Math.max(...frames), frameP99: percentile(frames, 0.99) };
}

/** Runs in the page: scrolls its log by so many frames, and gives how long each took. */
function scrollUp(count) {
  return new Promise((resolve) => {
    let scrolled = document.querySelector('[role=feed]');
    while (scrolled.scrollHeight <= scrolled.clientHeight + 1 || !/auto|scroll/.test(getComputedStyle(scrolled).overflowY)) scrolled = scrolled.parentElement;
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      scrolled.scrollTop -= 120;
      if (times.length < count) requestAnimationFrame(step);
      else resolve(times.slice(5));
    };
    requestAnimationFrame(step);
  });
}

/**
 * What the process of a tab takes that has opened and scrolled the long log. In a tab of Playwright's, that process also holds every reply of
 * the server, for whoever looks at the network; so this one is opened without it.
 */
async function measureMemory(page) {
  const storage = await page.evaluate(() => ({ ...localStorage }));
  await page.context().close();
  const cdp = await browser.newBrowserCDPSession();
  const tab = await openTab(cdp, home);
  await tab(`Object.assign(localStorage, ${JSON.stringify(storage)}); location.reload()`);
  await tab(`new Promise((resolve) => { const look = () => (document.querySelector('[data-row]') ? resolve() : setTimeout(look, 50)); look(); })`, 2_000);
  await tab(`location.hash = '#/goal/${long}'`);
  await tab(`new Promise((resolve) => { const look = () => (document.querySelector('[role=feed] .entry') ? resolve() : setTimeout(look, 50)); look(); })`);
  await tab(`(${scrollUp})(${FRAMES}).then(() => undefined)`);
  const heap = await tab('performance.memory.usedJSHeapSize');
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => {
    const share = /Pss:\s+(\d+)/.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1];
    return Number(share) * 1024;
  });
  return { memory: Math.max(...sizes), heap };
}

/** A tab that nothing is known of but what it evaluates. */
async function openTab(cdp, url) {
  const { browserContextId } = await cdp.send('Target.createBrowserContext');
  const { targetId } = await cdp.send('Target.createTarget', { url, browserContextId, width: 1280, height: 860 });
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: false });
  const waiting = new Map();
  cdp.on('Target.receivedMessageFromTarget', ({ message }) => {
    const { id, result, error } = JSON.parse(message);
    waiting.get(id)?.(error ?? result);
  });
  let last = 0;
  return async (expression, pause = 500) => {
    // A page that is being left evaluates nothing.
    await new Promise((resolve) => setTimeout(resolve, pause));
    const id = ++last;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    const params = { expression, awaitPromise: true, returnByValue: true };
    await cdp.send('Target.sendMessageToTarget', { sessionId, message: JSON.stringify({ id, method: 'Runtime.evaluate', params }) });
    const { result, exceptionDetails, message } = await answered;
    if (result === undefined || exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails ?? message)}`);
    return result.value;
  };
}

function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
