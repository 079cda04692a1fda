// Every button: it does what it says, once, and the journal knows who did it and why.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { HOSTILE, call, furnish, receiver, serve, until } from "./scene.mjs";
import { check, open, press, said, watched } from "./browser.mjs";

let server, hooks, browser, ids, page;
const reason = `because ${HOSTILE}`;

before(async () => {
  [server, hooks, browser] = await Promise.all([serve("dev"), receiver(), open()]);
  ids = await furnish(server, hooks);
  page = await watched(browser, { viewport: { width: 1360, height: 900 } });
});

after(async () => {
  await browser?.close();
  hooks?.stop();
  await server?.stop();
});

const go = (path) => page.goto(server.url + path);
const get = (path) => call(server, "GET", path);
const state = async (id) => (await get(`/v1/jobs/${id}`)).state;

test("a queue is paused and resumed, and its settings are changed", async () => {
  await go("/queues");
  const row = "tr:has-text('idle')";
  await press(page, row, "Pause", { reason });
  await said(page, /Queue idle is paused/);
  assert.equal((await get("/v1/queues/idle")).paused, true);
  await press(page, row, "Resume", { reason });
  await said(page, /handed out again/);
  await press(page, row, "Settings", { "lease_ttl_ms:duration": "90s", "quota:number": "500", "fair:bool": "true" });
  await said(page, /is changed/);
  const { lease_ttl_ms, quota, fair, paused } = await get("/v1/queues/idle");
  assert.deepEqual([lease_ttl_ms, quota, fair, paused], [90_000, 500, true, false]);
});

test("a job is requeued, run now, canceled, and canceled by force", async () => {
  await go(`/jobs/${ids.failed}`);
  await press(page, ".acts", "Requeue", { reason });
  await said(page, /queued again/);
  await go(`/jobs/${ids.later}`);
  assert.match(await page.locator("#why").innerText(), /It is due in/);
  await press(page, ".acts", "Run now", { reason });
  await said(page, /due now/);
  await until("it has run", async () => (await state(ids.later)) === "succeeded");
  await call(server, "POST", "/v1/runs", { items: [{ kind: "sleep", payload: { for: "1h" } }], consolidate: { kind: "noop", payload: {} } });
  const waiting = (await get("/v1/jobs?state=waiting")).items[0].id;
  await go(`/jobs/${waiting}`);
  assert.match(await page.locator("#why").innerText(), /waits until the other jobs of its run/);
  await press(page, ".acts", "Run now", { reason });
  await said(page, /due now/);
  await until("it has run", async () => (await state(waiting)) === "succeeded");
  await go(`/jobs/${ids.spare[1]}`);
  await press(page, ".acts", "Cancel", { reason });
  await said(page, /canceled/);
  assert.equal(await state(ids.spare[1]), "canceled");
  await go(`/jobs/${ids.running}`);
  await press(page, ".acts", "Cancel", { reason });
  await said(page, /asked to stop/);
  await until("its worker has stopped", async () => (await state(ids.running)) === "canceled");
  const forced = (await call(server, "POST", "/v1/jobs", { kind: "sleep", payload: { for: "1h" } })).id;
  await until("it runs", async () => (await state(forced)) === "running");
  await go(`/jobs/${forced}`);
  await press(page, ".acts", "Cancel by force", { reason });
  await said(page, /canceled/);
  assert.equal(await state(forced), "canceled");
});

test("a job tells its story, and why it does not run", async () => {
  await go(`/jobs/${ids.gated}`);
  assert.match(await page.locator("#why").innerText(), /waits for gate source:ebay: breaker open/);
  await go(`/jobs/${ids.waits}`);
  assert.match(await page.locator("#why").innerText(), /waits for gate source:amazon: paused/);
  await go(`/jobs/${ids.dead[0]}`);
  const story = await page.locator(".timeline").innerText();
  for (const word of ["Stored", "Claimed", "Attempt 1: dead", "onerror"]) assert.match(story, new RegExp(word));
});

test("ticked jobs are acted on together, and those that cannot be are told", async () => {
  await go("/jobs?kind=noop");
  await page.locator(`input[value="${ids.spare[2]}"]`).check();
  await page.locator("#chosen input[name=reason]").fill(reason);
  await Promise.all([page.waitForNavigation(), page.locator("#chosen button", { hasText: "Run now" }).click()]);
  await said(page, /1 job done/);
  const tick = async (verb, id) => {
    await go("/jobs?kind=noop");
    await page.locator(`input[value="${id}"]`).check();
    await Promise.all([page.waitForNavigation(), page.locator("#chosen button", { hasText: verb }).click()]);
    await said(page, /1 job done/);
  };
  await tick("Cancel", ids.waits);
  assert.equal(await state(ids.waits), "canceled");
  await tick("Requeue", ids.waits);
  assert.equal(await state(ids.waits), "queued");
  await go("/jobs");
  await Promise.all([page.waitForNavigation(), page.locator("#chosen button", { hasText: "Cancel" }).click()]);
  assert.match(await page.locator(".said.bad").innerText(), /Nothing was chosen/);
  await go("/jobs?kind=noop");
  await page.locator(`input[value="${ids.succeeded}"]`).check();
  await Promise.all([page.waitForNavigation(), page.locator("#chosen button", { hasText: "Requeue" }).click()]);
  assert.match(await page.locator(".said.bad").innerText(), /Not done/);
});

test("all jobs that match are acted on, after they were counted and shown", async () => {
  await go("/jobs?state=dead&kind=fail");
  await Promise.all([page.waitForNavigation(), page.locator("a", { hasText: "Requeue all that match" }).click()]);
  assert.match(await page.locator("h1").innerText(), /Requeue \d+ jobs\?/);
  await press(page, ".acts", "Requeue", { reason });
  await until("it is done", async () => {
    await page.reload();
    return page.locator(".badge.is-succeeded").count();
  });
  await check(page);
  await until("they have died again", async () => (await state(ids.dead[1])) === "dead");
  await go("/dead");
  await press(page, "tr:has-text('fail')", "Requeue", { reason });
  assert.match(page.url(), /\/operations\//);
  for (const also of ["until=1970-01-01T00:00:00Z", "text=x", "stuck=5m"]) {
    assert.equal((await page.goto(`${server.url}/jobs/bulk?act=cancel&state=queued&${also}`)).status(), 422, "what is counted is what is acted on");
  }
  assert.equal((await page.goto(`${server.url}/jobs/bulk?act=requeue&state=queued`)).status(), 422);
  page.troubles.length = 0;
  await call(server, "POST", "/v1/queues/tenure/pause", { reason });
  const endless = (await call(server, "POST", "/v1/operations", { act: "cancel", state: "queued", kind: "nothing-at-all" })).id;
  await go(`/operations/${endless}`);
  await press(page, ".acts", "Stop", { reason });
  await said(page, /what it has done stays/);
  await call(server, "POST", "/v1/queues/tenure/resume", { reason });
  assert.equal(await page.locator(".head .badge").innerText(), "canceled");
});

test("a gate is tripped, reset, paused, resumed, and given a rule", async () => {
  await go("/gates/source:ebay");
  await press(page, ".acts", "Reset", { reason });
  await said(page, /is closed/);
  await press(page, ".acts", "Trip", { reason, "for_ms:duration": "10m" });
  await said(page, /is open/);
  await press(page, ".acts", "Pause", { reason, "for_ms:duration": "10m" });
  await said(page, /is paused/);
  await press(page, ".acts", "Resume", { reason });
  await said(page, /is resumed/);
  await press(page, ".acts", "Set rule", { rate: "60/m", "concurrency:number": "7", reason });
  await said(page, /rule of source:ebay is set/);
  const gate = await get("/v1/gates/source:ebay");
  assert.equal(gate.rule.concurrency, 7);
  const history = await page.locator(".timeline").innerText();
  for (const word of ["Gate tripped", "Gate reset", "Gate paused", "Gate resumed", "by dashboard", "because"]) assert.match(history, new RegExp(word));
});

test("a schedule is resumed and paused", async () => {
  await go("/schedules");
  await press(page, "tr:has-text('nightly')", "Resume", { reason });
  await said(page, /is resumed/);
  await go("/schedules/default/nightly");
  await press(page, ".acts", "Pause", { reason });
  await said(page, /is paused/);
  assert.equal((await get("/v1/schedules/nightly")).paused, true);
});

test("partitions are resumed and reset, and a run is canceled", async () => {
  await go(`/runs/${ids.run}`);
  await press(page, "tr:has-text('failed')", "Resume", { reason });
  await said(page, /goes on/);
  await until("it has failed again", async () => (await get(`/v1/runs/${ids.run}`)).state === "failed");
  await go(`/runs/${ids.run}`);
  await press(page, "tr:has-text('failed')", "Reset", { reason, "offset:number": "20" });
  await said(page, /begins again/);
  await go(`/runs/${ids.open}`);
  await press(page, ".acts", "Cancel run", { reason });
  await said(page, /is canceled/);
  assert.equal((await get(`/v1/runs/${ids.open}`)).state, "canceled");
});

test("an endpoint is made, pinged, rotated, disabled, enabled, resent to and removed", async () => {
  await go("/webhooks");
  await press(page, ".acts", "New endpoint", { url: `${hooks.url}/new`, "events:list": "job.*, run.*", reason });
  assert.match(await page.locator(".secret").innerText(), /^whsec_/);
  await check(page);
  await go(`/webhooks/${ids.endpoint}`);
  await press(page, ".acts", "Ping", { reason });
  await said(page, /webhook.pinged/);
  await press(page, ".acts", "Disable", { reason });
  await said(page, /gets nothing more/);
  await press(page, ".acts", "Enable", { reason });
  await said(page, /gets events again/);
  await press(page, ".acts", "Rotate secret", { reason, "overlap_ms:duration": "1h" });
  assert.match(await page.locator(".secret").innerText(), /^whsec_/);
  await go(`/deliveries/${ids.delivery}`);
  await press(page, ".acts", "Resend", { reason });
  await said(page, /sent again/);
  await go(`/webhooks/${ids.broken}`);
  await press(page, ".acts", "Resend failed", { reason });
  await said(page, /sent again/);
  await press(page, ".acts", "Remove");
  page.troubles.length = 0;
  assert.equal((await page.goto(`${server.url}/webhooks/${ids.broken}`)).status(), 404);
  page.troubles.length = 0;
});

test("a key is made, rotated and revoked, and a tenant has a quota", async () => {
  await go("/keys");
  await press(page, ".acts", "New key", { name: "billing", "scopes:list": ["read", "operate"], "life_ms:duration": "90d", tenant: "acme", reason });
  assert.match(await page.locator(".secret").innerText(), /^tnk_/);
  await go("/keys");
  await press(page, "tr:has-text('billing')", "Rotate", { reason, "overlap_ms:duration": "1h" });
  assert.match(await page.locator(".secret").innerText(), /^tnk_/);
  await go("/keys");
  await press(page, "tr:has-text('billing')", "Revoke", { reason });
  await said(page, /has ended/);
  await go("/tenants");
  await press(page, "tr:has-text('acme')", "Quota", { "quota:number": "250", reason });
  await said(page, /quota of acme is set/);
  assert.equal((await get("/v1/tenants/acme")).quota, 250);
});

test("a worker is told to be quiet, to work again and to stop", async () => {
  await call(server, "POST", "/v1/workers", { name: "told", queues: [{ queue: "idle", slots: 3 }] });
  await go("/workers");
  const row = "tr:has-text('told')";
  await press(page, row, "Quiet", { reason });
  await said(page, /claims nothing more/);
  await press(page, row, "Resume", { reason });
  await said(page, /works again/);
  await press(page, row, "Stop", { reason });
  await said(page, /finishes what it has/);
});

test("the journal knows who did it and why", async () => {
  await go("/audit?actor=dashboard");
  const told = await page.locator("[data-live=audit]").innerText();
  for (const word of ["queue_paused", "hastened", "requeued", "gate_tripped", "schedule_resumed", "run_canceled", "key_created", "worker_ordered", "because"]) {
    assert.match(told, new RegExp(word));
  }
  await check(page);
});
