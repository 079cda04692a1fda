// What a page tells about what stands still, and that it can be read: no row moves under the pointer, no form forgets.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { call, serve, tenure, until } from "./scene.mjs";
import { check, open, press, said, watched } from "./browser.mjs";

let server, browser, page;
const wide = { viewport: { width: 1360, height: 900 } };

before(async () => {
  [server, browser] = await Promise.all([serve("dev"), open()]);
  page = await watched(browser, wide);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const go = (path) => page.goto(server.url + path);
const get = (path) => call(server, "GET", path);
const job = (body) => call(server, "POST", "/v1/jobs", { payload: {}, ...body }).then((made) => made.id);
// The page itself is asked again until it says so: it counts queues once a second.
const shows = (path, where, pattern) =>
  until(`${path} says ${pattern}`, async () => {
    await go(path);
    return pattern.test((await page.locator(where).allInnerTexts()).join("\n"));
  });

test("a page that fits the screen has no scroll bar, in development mode too", async () => {
  for (const path of ["/dead", "/operations", "/search?q=nothing-of-this-name"]) {
    await go(path);
    const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollHeight, document.documentElement.clientHeight]);
    assert.ok(inner <= outer, `${path} is ${inner - outer} taller than the screen`);
  }
});

test("a queue with due jobs and without a worker is a warning, until a worker serves it", async () => {
  for (let n = 0; n < 3; n += 1) await job({ kind: "noop", queue: "lonely" });
  await shows("/", "#health", /No worker serves queue lonely: 3 jobs due, the oldest for/);
  const line = page.locator("#health tr", { hasText: "lonely" });
  assert.match(await line.innerText(), /look/);
  await check(page);
  await shows("/queues", "tr:has-text('lonely')", /no worker/);
  await check(page);
  assert.equal((await get("/v1/queues/lonely")).slots, 0);
  await call(server, "POST", "/v1/workers", { name: "late", queues: [{ queue: "lonely", slots: 2 }] });
  assert.equal((await get("/v1/queues")).items.find((queue) => queue.name === "lonely").slots, 2);
  await shows("/", "#health", /Every queue with due jobs has a worker/);
  await shows("/queues", "tr:has-text('lonely')", /good/);
});

test("a job that no worker handles says so, and says when it is offered again", async () => {
  const id = await job({ kind: "unheard" });
  await until("it was given back", async () => (await get(`/v1/jobs/${id}`)).attempts?.length > 0);
  await go(`/jobs/${id}`);
  const why = await page.locator("#why").innerText();
  assert.match(why, /No live worker handles kind unheard: the job was given back 1 time\. It is offered to workers again in \d+s/);
  await check(page);
  await call(server, "POST", "/v1/queues/default/pause", {});
  await press(page, ".acts", "Run now");
  await until("its queue stands in its way", async () => {
    await go(`/jobs/${id}`);
    return /Queue default is paused/.test(await page.locator("#why").innerText());
  });
  await call(server, "POST", "/v1/queues/default/resume", {});
});

test("the form of a rule begins with the rule that holds, and changes what was edited", async () => {
  const rule = { rate: "30/m", burst: 9, concurrency: 2, breaker_failures: 5, breaker_cooldown_ms: 60_000, weight: 3 };
  await call(server, "PUT", "/v1/rules/source:shop", rule);
  await call(server, "POST", "/v1/gates/source:shop/pause", {});
  const before = (await get("/v1/gates/source:shop")).rule;
  await go("/gates/source:shop");
  await press(page, ".acts", "Set rule", { "concurrency:number": "7", reason: "a larger pool" });
  await said(page, /rule of source:shop is set/);
  assert.deepEqual((await get("/v1/gates/source:shop")).rule, { ...before, concurrency: 7 });
  await press(page, ".acts", "Set rule", { rate: "", "burst:number": "", reason: "no limit" });
  await said(page, /rule of source:shop is set/);
  const after = (await get("/v1/gates/source:shop")).rule;
  assert.deepEqual([after.rate ?? null, after.concurrency, after.weight], [null, 7, 3], "what is left empty is not limited");
  // A gate under the rule of a pattern: the form shows that rule.
  await call(server, "PUT", "/v1/rules/domain:*", { concurrency: 4, breaker_failures: 2, breaker_cooldown_ms: 30_000 });
  await call(server, "POST", "/v1/gates/domain:a.example/pause", {});
  await go("/gates/domain%3Aa.example");
  await press(page, ".acts", "Set rule", { rate: "5/s" });
  const own = (await get("/v1/gates/domain:a.example")).rule;
  assert.deepEqual([own.rate, own.concurrency, own.breaker_failures, own.breaker_cooldown_ms], ["5/s", 4, 2, 30_000]);
});

test("times name their zone", async () => {
  const id = await job({ kind: "noop" });
  await until("it has run", async () => (await get(`/v1/jobs/${id}`)).state === "succeeded");
  for (const path of ["/", "/jobs", `/jobs/${id}`, "/workers"]) {
    await go(path);
    const titles = await page.locator("time").evaluateAll((all) => all.map((time) => time.title));
    assert.ok(titles.length > 0, path);
    for (const title of titles) assert.match(title, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/, path);
  }
  await go(`/jobs/${id}`);
  assert.match(await page.locator("[data-live=job-timeline] header").innerText(), /times in UTC/);
  await go("/");
  assert.equal(await page.locator(".chart text", { hasText: /^UTC$/ }).count(), 2, "one for each chart");
});

test("rows stay where they are while the pointer is over them", async () => {
  for (let n = 0; n < 3; n += 1) await job({ kind: "pointed", queue: "lonely" });
  await go("/jobs?kind=pointed");
  await page.locator("#live.on").waitFor();
  const rows = page.locator("tbody tr");
  assert.equal(await rows.count(), 3);
  const first = await rows.first().locator("a").getAttribute("href");
  const place = await rows.first().boundingBox();
  await rows.first().hover();
  await job({ kind: "pointed", queue: "lonely" });
  await page.locator("#news", { hasText: "1 new, click to show" }).waitFor();
  assert.equal(await rows.first().locator("a").getAttribute("href"), first);
  assert.deepEqual(await rows.first().boundingBox(), place, "nothing has moved it");
  await check(page);
  await page.locator("#news").click();
  assert.equal(await rows.count(), 4);
  await page.locator("#news").waitFor({ state: "hidden" });
  await rows.nth(1).hover();
  await job({ kind: "pointed", queue: "lonely" });
  await page.locator("#news:not([hidden])").waitFor();
  assert.equal(await rows.count(), 4);
  await page.mouse.move(5, 5);
  await until("the pointer has gone", async () => (await rows.count()) === 5);
  await rows.nth(2).locator("a").focus();
  await job({ kind: "pointed", queue: "lonely" });
  await page.locator("#news:not([hidden])").waitFor();
  assert.equal(await rows.count(), 5, "a row with the focus stays as well");
});

test("what can be done with ticked jobs stays in sight", async () => {
  const jobs = Array.from({ length: 60 }, () => JSON.stringify({ kind: "many", queue: "lonely", payload: {} }));
  const headers = { "content-type": "application/x-ndjson" };
  const answer = await fetch(`${server.url}/v1/jobs/batch`, { method: "POST", headers, body: jobs.join("\n") });
  if (!answer.ok) for (const one of jobs) await call(server, "POST", "/v1/jobs", JSON.parse(one));
  for (const viewport of [wide.viewport, { width: 390, height: 844 }]) {
    const narrow = await watched(browser, { viewport });
    await narrow.goto(`${server.url}/jobs?kind=many`);
    const bar = narrow.locator("#chosen");
    const isSeen = async () => {
      const box = await bar.boundingBox();
      return box.y >= 0 && box.y + box.height <= viewport.height;
    };
    assert.equal(await isSeen(), false, "it is under the list");
    await narrow.locator("tbody tr input").first().check();
    assert.equal(await isSeen(), true, "a job is ticked");
    await check(narrow);
    await narrow.locator("tbody tr input").first().uncheck();
    assert.equal(await isSeen(), false);
    await narrow.context().close();
  }
});

test("a filter that is refused is shown as it was filled in, with the reason beside its field", async () => {
  for (const [path, field, value, others] of [
    ["/jobs", "kind", "no kind", { queue: "lonely", text: "x" }],
    ["/jobs", "since", "yesterday", { kind: "noop" }],
    ["/jobs", "stuck", "soon", {}],
    ["/dead", "queue", "a b", { kind: "noop" }],
    ["/audit", "job", "seven", { actor: "key:a" }],
    ["/audit", "since", "never", {}],
    ["/gates", "pattern", "a b", {}],
  ]) {
    const answer = await go(`${path}?${new URLSearchParams({ [field]: value, ...others })}`);
    assert.equal(answer.status(), 422, `${path} ${field}`);
    const input = page.locator(`main form input[name="${field}"]`);
    assert.equal(await input.inputValue(), value);
    for (const [name, text] of Object.entries(others)) assert.equal(await page.locator(`main form input[name="${name}"]`).inputValue(), text);
    assert.equal(await input.getAttribute("aria-invalid"), "true");
    assert.match(await page.locator(`label:has([name="${field}"]) [role=alert]`).innerText(), /./);
    page.troubles.length = 0;
    await check(page);
    await Promise.all([page.waitForNavigation(), page.locator("main a", { hasText: "clear the filter" }).click()]);
    assert.equal(page.url(), server.url + path);
  }
  const answer = await go("/jobs?state=asleep&kind=noop");
  assert.equal(answer.status(), 422);
  assert.match(await page.locator("main > [role=alert]").innerText(), /state/);
  page.troubles.length = 0;
});

test("a job is found by the beginning of its id, and everything by the beginning of its name", async () => {
  const find = async (q) => {
    await go("/");
    await page.locator("#q").fill(q);
    await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  };
  // The first 8 digits of an id change every 65 s: two jobs of one such time are wanted.
  let [other, id] = ["", ""];
  while (id.slice(0, 8) !== other.slice(0, 8) || id === other) [other, id] = [await job({ kind: "noop" }), await job({ kind: "noop" })];
  await find(id);
  assert.equal(page.url(), `${server.url}/jobs/${id}`);
  await find(id.slice(0, 28));
  assert.equal(page.url(), `${server.url}/jobs/${id}`, "one job alone is opened");
  const all = (await get("/v1/jobs?limit=100")).items.filter((one) => one.id.startsWith(id.slice(0, 8)));
  await find(id.slice(0, 8));
  assert.equal(await page.locator(".found li").count(), Math.min(10, all.length));
  assert.match(await page.locator(".found").first().innerText(), /^Jobs\n/);
  await check(page);
  await call(server, "PUT", "/v1/schedules/lonely-nights", { cron: "0 3 * * *", kind: "noop", payload: {} });
  await find("lone");
  const found = await page.locator(".found").allInnerTexts();
  assert.deepEqual(found.map((text) => text.split("\n")[0]), ["Schedules", "Queues"]);
  await page.locator(".found a", { hasText: "lonely" }).last().click();
  await page.waitForURL(`${server.url}/jobs?queue=lonely`);
  await find("sourc");
  assert.match(await page.locator(".found").innerText(), /Gates\s+source:shop/);
  await find("noo");
  assert.match(await page.locator(".found").innerText(), /Kinds\s+noop/);
  await find("01933c5");
  assert.match(await page.locator("h1").innerText(), /Nothing has the id or name/, "seven digits are the jobs of hours");
});

test("a tenant finds nothing of others by the beginning of an id or a name", async () => {
  const [closed, looks] = [await serve("server"), await watched(browser)];
  try {
    await tenure(closed, "tenants", "set", "acme");
    const { key } = await tenure(closed, "keys", "create", "--name", "acme", "--scopes", "read", "--tenant", "acme");
    const [own, other] = [
      (await tenure(closed, "enqueue", "noop", "{}", "--tenant", "acme", "--delay", "1h")),
      (await tenure(closed, "enqueue", "noop", "{}", "--delay", "1h")),
    ].map((made) => made.id ?? made.job?.id ?? made.job);
    await looks.goto(`${closed.url}/sign-in`);
    await looks.locator("#key").fill(key);
    await Promise.all([looks.waitForNavigation(), looks.locator("button").click()]);
    await looks.goto(`${closed.url}/search?q=${own.slice(0, 23)}`);
    assert.equal(looks.url(), `${closed.url}/jobs/${own}`);
    for (const q of [other.slice(0, 23), other, "defa", "acm"]) {
      await looks.goto(`${closed.url}/search?q=${q}`);
      assert.match(await looks.locator("h1").innerText(), /Nothing has the id or name/, q);
    }
    await looks.goto(`${closed.url}/search?q=${other.slice(0, 8)}`);
    assert.doesNotMatch(await looks.locator("body").innerText(), new RegExp(`${other}`));
  } finally {
    await looks.context().close();
    await closed.stop();
  }
});
