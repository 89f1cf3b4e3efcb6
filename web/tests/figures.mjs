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
  const frames = await page.evaluate(
    (count) =>
      new Promise((resolve) => {
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
      }),
    FRAMES,
  );
  return { opens, frames: frames.length, longestFrame: Math.max(...frames), frameP99: percentile(frames, 0.99) };
}

/** What the process of the tab takes. */
async function measureMemory(page) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const { metrics } = await cdp.send('Performance.getMetrics');
  const { processInfo } = await (await browser.newBrowserCDPSession()).send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => {
    const share = /Pss:\s+(\d+)/.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1];
    return Number(share) * 1024;
  });
  return { memory: Math.max(...sizes), heap: metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0 };
}

function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
