// Every page: it answers, nothing is wrong on it, and no text becomes markup; wide, narrow and in the dark.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { call, furnish, receiver, serve, until } from "./scene.mjs";
import { check, open, visit, watched } from "./browser.mjs";

let server, hooks, browser, ids;

before(async () => {
  [server, hooks, browser] = await Promise.all([serve("dev"), receiver(), open()]);
  ids = await furnish(server, hooks);
});

after(async () => {
  await browser?.close();
  hooks?.stop();
  await server?.stop();
});

const paths = () => [
  "/", "/?within=24h", "/?within=7d",
  "/jobs", "/jobs?state=dead", "/jobs?text=onerror", "/jobs?since=1h&kind=noop&queue=default&tenant=default", "/jobs?kind=%22%3E%3Cscript%3E",
  "/jobs/bulk?act=requeue&state=dead",
  ...["dead", "failed", "succeeded", "retryable", "running", "later", "gated", "waits", "result"].map((name) => `/jobs/${[ids[name]].flat()[0]}`),
  "/queues", "/dead", "/dead?kind=fail", "/operations", `/operations/${ids.operation}`,
  "/runs", "/runs?show=open", `/runs/${ids.run}`, `/runs/${ids.open}`,
  "/gates", "/gates?pattern=source:", "/gates/source:ebay", "/gates/source%3Aamazon",
  "/schedules", "/schedules/default/nightly", "/workers", "/workers?all=true",
  "/webhooks", "/webhooks?state=failed", `/webhooks/${ids.endpoint}`, `/deliveries/${ids.delivery}`,
  "/audit", "/audit?all=true", "/audit?event=gate_tripped", `/audit?job=${ids.dead[0]}`, "/tenants", "/keys", "/keys?ended=true",
  "/search?q=nothing-of-this-name", "/search?q=%22%3E%3Cscript%3Ewindow.broken=1",
];

test("every page is well", async (t) => {
  for (const [name, options] of [
    ["wide", { viewport: { width: 1360, height: 900 } }],
    ["dark", { viewport: { width: 1360, height: 900 }, colorScheme: "dark" }],
    ["phone", { viewport: { width: 390, height: 844 }, hasTouch: true }],
  ]) {
    await t.test(name, async () => {
      const page = await watched(browser, options);
      for (const path of paths()) {
        const refused = path.includes("kind=%22");
        if (refused) page.troubles.length = 0;
        await visit(page, server.url + path, refused ? 422 : 200).catch((error) => {
          // The browser itself tells of an answer that is no 200.
          if (!refused || !/status of 422/.test(page.troubles.join())) throw error;
          page.troubles.length = 0;
        });
        assert.equal(await page.locator("h1").count(), 1, path);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wider <= 1, `${path} is ${wider} wider than the screen`);
      }
      await page.context().close();
    });
  }
});

test("pages are measured by their path", async () => {
  assert.equal((await fetch(`${server.url}/jobs/${ids.dead[0]}`)).status, 200);
  const figures = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(figures, /^tenure_http_requests_total\{[^}]*route="\/jobs\/\{id\}"[^\n]*/m);
});

test("a page that is not there says so", async () => {
  const page = await watched(browser);
  for (const path of ["/nothing", "/jobs/01933c5e-7b5a-7000-8000-000000000001", "/jobs/seven", "/runs/01933c5e-7b5a-7000-8000-000000000001"]) {
    const answer = await page.goto(server.url + path);
    assert.ok([404, 422].includes(answer.status()), path);
    assert.match(await page.locator("main").innerText(), /./);
    page.troubles.length = 0;
  }
  await page.context().close();
});

test("every page without a script is the same page", async () => {
  const page = await watched(browser, { javaScriptEnabled: false });
  for (const path of ["/", "/jobs", `/jobs/${ids.dead[0]}`, "/gates"]) {
    assert.equal((await page.goto(server.url + path)).status(), 200);
    assert.match(await page.locator("h1").innerText(), /./);
  }
  await page.context().close();
});

test("a page follows what happens, and leaves alone what somebody is doing", async () => {
  const page = await watched(browser);
  await page.goto(`${server.url}/jobs?kind=noop&state=succeeded`);
  await page.locator("#live.on").waitFor();
  const rows = page.locator("tbody tr");
  const count = await rows.count();
  await call(server, "POST", "/v1/jobs", { kind: "noop", payload: { live: 1 } });
  await until("the new job is on the page", async () => (await rows.count()) === count + 1);
  await rows.first().locator("input").check();
  await call(server, "POST", "/v1/jobs", { kind: "noop", payload: { live: 2 } });
  const made = () => call(server, "GET", "/v1/jobs?kind=noop&state=succeeded").then((jobs) => jobs.items.length);
  await until("another one has ended", async () => (await made()) === count + 2);
  await page.waitForResponse((answer) => answer.url().includes("/jobs?kind=noop"));
  assert.equal(await rows.first().locator("input").isChecked(), true, "a tick was taken away");
  await check(page);
  await page.context().close();
});

test("anything is found by its id or name, and with the keyboard alone", async () => {
  const page = await watched(browser);
  for (const [q, path] of [
    [ids.dead[0], `/jobs/${ids.dead[0]}`], [ids.run, `/runs/${ids.run}`], ["source:ebay", "/gates/source%3Aebay"], ["default", "/jobs?queue=default"],
    [ids.endpoint, `/webhooks/${ids.endpoint}`], [ids.delivery, `/deliveries/${ids.delivery}`], [ids.operation, `/operations/${ids.operation}`], ["1", "/workers?all=true"],
  ]) {
    await page.goto(server.url);
    await page.keyboard.press("/");
    await page.keyboard.type(q);
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
    assert.equal(page.url(), server.url + path);
  }
  await page.goto(server.url);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the page");
  await page.context().close();
});
