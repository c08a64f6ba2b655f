// Measures in headless Chromium against `linerate serve --web`: `node web.mjs SERVER FULL_SERVER SCREENSHOTS`. SERVER shows its
// history; FULL_SERVER has no session left. Started by crates/cli/tests/web_browser.rs.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [server, full, screenshots] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const PATIENCE = { timeout: 90_000 };
const DESK = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

mkdirSync(screenshots, { recursive: true });
// Within a container one is root, and Chromium's own sandbox has nothing to stand on.
const asRoot = process.getuid() === 0 ? ["--no-sandbox"] : [];
const browser = await chromium.launch({ executablePath, args: asRoot });
const picture = (page, name) => page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

// Opens the page, hands it to `look`, and fails on anything on the console that is not expected, and on requests elsewhere.
async function visit(address, options, look, expected = /^$/) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const trouble = [];
  page.on("console", (message) => expected.test(message.text()) || trouble.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(address).origin && protocol !== "blob:") trouble.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(address);
    await look(page, context);
    assert.deepEqual(trouble, []);
    assert.deepEqual(await context.cookies(), []);
  } finally {
    await context.close();
  }
}

const text = (page, id) => page.textContent(`#${id}`);

async function measures(name, options) {
  await visit(server, options, async (page) => {
    await picture(page, `${name}-start`);
    await page.click("#start");
    await page.waitForFunction(() => document.getElementById("status").textContent.includes("upload"), null, PATIENCE);
    await page.waitForFunction(() => document.querySelector("#graph polyline.up"), null, PATIENCE);
    assert.equal(await overflow(page), 0, "wider than the window in the middle");
    await picture(page, `${name}-middle`);
    await page.waitForSelector("#verdict:not([hidden])", PATIENCE);
    assert.equal(await overflow(page), 0, "wider than the window at the end");
    await picture(page, `${name}-end`);
    for (const id of ["down", "up"]) assert.match(await text(page, id), /^[\d.]+ [MG]bit\/s$/, id);
    assert.match(await text(page, "idle"), /^[\d.]+ ms$/);
    assert.match(await text(page, "grade"), /^(A\+|[A-F])$/);
    assert.match(await text(page, "kept"), /^Kept as run \d+/);
    assert.ok((await page.locator("#limits dd:not(.sure)").count()) === 2, "both directions have a limit");
    assert.ok((await page.locator("#next li").count()) > 0);
    assert.ok((await page.locator("#graph circle").count()) > 20, "round trips are drawn");
    assert.match(await page.getAttribute("#graph svg", "aria-label"), /download about .*upload about .*round trips/);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
    assert.match(saved.suggestedFilename(), /^linerate-web-.*\.json$/);
  });
}

const tests = {
  "a desk measures, in the light": () => measures("desk", DESK),
  "a phone measures, in the dark": () => measures("phone", { ...PHONE, colorScheme: "dark" }),

  async "the test starts and stops by keys alone"() {
    await visit(server, DESK, async (page) => {
      await page.waitForSelector("#start:enabled");
      await page.focus("#start");
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelectorAll("#graph circle").length > 3, null, PATIENCE);
      await page.focus("#stop");
      await page.keyboard.press("Space");
      await page.waitForSelector("#error:not([hidden])", PATIENCE);
      assert.match(await text(page, "error"), /^The test ended early: the test was stopped/);
      assert.equal(await text(page, "start"), "Test again");
    });
  },

  async "a lost connection is named"() {
    const lost = /ERR_INTERNET_DISCONNECTED|Failed to load resource/;
    await visit(server, DESK, async (page, context) => {
      await page.click("#start");
      await page.waitForFunction(() => document.querySelectorAll("#graph circle").length > 3, null, PATIENCE);
      await context.setOffline(true);
      await page.waitForSelector("#error:not([hidden])", PATIENCE);
      assert.match(await text(page, "error"), /connection to the server failed.*still connected/);
    }, lost);
  },

  async "a full server says so"() {
    await visit(full, PHONE, async (page) => {
      await page.click("#start");
      await page.waitForSelector("#error:not([hidden])", PATIENCE);
      assert.match(await text(page, "error"), /the server is busy.*try again in a minute/);
      await picture(page, "phone-full");
    }, /503/);
  },

  async "without scripts the page says what to do"() {
    await visit(server, { ...PHONE, javaScriptEnabled: false }, async (page) => {
      assert.match(await page.textContent("noscript"), /curl/);
      assert.equal(await overflow(page), 0);
      await picture(page, "phone-noscript");
    });
  },

  async "the history is listed, compared and reported"() {
    await visit(new URL("/history", server).href, PHONE, async (page) => {
      assert.equal(await overflow(page), 0);
      await picture(page, "phone-history");
      await page.check("input[name=before] >> nth=1");
      await page.check("input[name=after] >> nth=0");
      await page.click("main button");
      await page.waitForSelector("text=Goodput down", PATIENCE);
      assert.match(page.url(), /before=1(&|$)/);
      assert.match(page.url(), /after=2(&|$)/);
      await page.goto(new URL("/history/run?id=1", server).href);
      await page.waitForSelector(".drawn canvas", PATIENCE);
      await picture(page, "phone-report");
      await page.goto(new URL("/history/trend?figure=goodput_down", server).href);
      await page.waitForSelector("svg.trend polyline", { state: "attached" });
    });
  },

  async "curves are whole though no question about samples was answered while a phase ran"() {
    // Questions have no answer until the end of their phase; those after a phase have a time limit, and get one.
    const unanswered = `{
      const limited = new WeakSet();
      const limit = AbortSignal.timeout.bind(AbortSignal);
      AbortSignal.timeout = (time) => {
        const signal = limit(time);
        limited.add(signal);
        return signal;
      };
      const real = fetch;
      self.fetch = (url, options) => {
        if (!/api.session[?]/.test(url) || limited.has(options.signal)) return real(url, options);
        return new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
      };
    }`;
    await visit(server, DESK, async (page) => {
      await page.route("**/worker.js", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: unanswered + await response.text() });
      }, { times: 1 });
      await page.click("#start");
      await page.waitForSelector("#verdict:not([hidden])", PATIENCE);
      for (const direction of ["down", "up"]) await page.waitForSelector(`#graph polyline.${direction}`, { state: "attached", ...PATIENCE });
    });
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  const begin = performance.now();
  try {
    await test();
    console.log(`ok      ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exitCode = failed === 0 ? 0 : 1;
