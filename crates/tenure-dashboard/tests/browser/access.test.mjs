// Who gets in, what they see, and what a page of somebody else's can do: nothing.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { serve, tenure } from "./scene.mjs";
import { check, open, press, said, visit, watched } from "./browser.mjs";

let server, browser;
const keys = {};

before(async () => {
  [server, browser] = await Promise.all([serve("server"), open()]);
  await tenure(server, "tenants", "set", "acme");
  const make = async (name, scopes, ...rest) => (keys[name] = (await tenure(server, "keys", "create", "--name", name, "--scopes", scopes, ...rest)).key);
  await make("ops", "read,operate,admin");
  await make("looks", "read");
  await make("sends", "enqueue");
  await make("acme", "read,operate", "--tenant", "acme");
  await tenure(server, "enqueue", "noop", '{"whose": "default"}');
  await tenure(server, "enqueue", "noop", '{"whose": "acme"}', "--tenant", "acme");
  const operation = { act: "cancel", state: "queued", kind: "none-of-it", tenant: "acme", reason: "between operators" };
  const headers = { authorization: `Bearer ${keys.ops}`, "content-type": "application/json" };
  const begun = await fetch(server.url + "/v1/operations", { method: "POST", headers, body: JSON.stringify(operation) });
  assert.equal(begun.status, 202);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function signIn(page, key) {
  await page.goto(server.url + "/jobs?kind=noop");
  assert.match(page.url(), /\/sign-in\?next=/);
  await page.locator("#key").fill(key);
  await Promise.all([page.waitForNavigation(), page.locator("button", { hasText: "Sign in" }).click()]);
}

test("nobody sees a page without a key", async () => {
  const page = await watched(browser);
  for (const path of ["/", "/jobs", "/queues", "/keys", "/audit", "/search?q=1"]) {
    await page.goto(server.url + path);
    assert.match(page.url(), /\/sign-in/, path);
  }
  await check(page);
  await page.locator("#key").fill("tnk_wrong");
  await Promise.all([page.waitForNavigation(), page.locator("button").click()]);
  assert.match(await page.locator("[role=alert]").innerText(), /no key, or it has ended/);
  await page.locator("#key").fill(keys.sends);
  await Promise.all([page.waitForNavigation(), page.locator("button").click()]);
  assert.match(await page.locator("[role=alert]").innerText(), /may not read/);
  await page.context().close();
});

test("a session is a cookie that no script reads, and it ends with a word or with its key", async () => {
  const page = await watched(browser);
  await signIn(page, keys.ops);
  assert.equal(page.url(), server.url + "/jobs?kind=noop", "one comes back to where one wanted to go");
  const [cookie] = (await page.context().cookies()).filter((one) => one.name === "__Host-tenure");
  const { httpOnly, secure, sameSite, path, domain } = cookie;
  assert.deepEqual({ httpOnly, secure, sameSite, path, domain }, { httpOnly: true, secure: true, sameSite: "Lax", path: "/", domain: "127.0.0.1" });
  assert.ok(!cookie.value.includes(keys.ops.slice(-20)), "the key itself is not in it");
  assert.equal(await page.evaluate(() => document.cookie), "");
  await visit(page, server.url + "/keys");
  await Promise.all([page.waitForNavigation(), page.locator("button", { hasText: "Sign out" }).click()]);
  await page.context().addCookies([cookie]);
  await page.goto(server.url + "/keys");
  assert.match(page.url(), /\/sign-in/, "the session has ended at the server, too");
  await signIn(page, (keys.gone = (await tenure(server, "keys", "create", "--name", "gone", "--scopes", "read")).key));
  assert.equal(page.url(), server.url + "/jobs?kind=noop");
  await tenure(server, "keys", "revoke", keys.gone.split("_")[1]);
  for (let tries = 0; !/sign-in/.test(page.url()) && tries < 100; tries += 1) {
    await page.goto(server.url + "/");
    await page.waitForLoadState();
  }
  assert.match(page.url(), /\/sign-in/, "a key that is revoked ends its sessions");
  await page.context().close();
});

test("who may only look has no buttons, and cannot press them", async () => {
  const page = await watched(browser);
  await signIn(page, keys.looks);
  for (const path of ["/", "/jobs", "/queues", "/gates", "/workers", "/webhooks"]) {
    await visit(page, server.url + path);
    assert.equal(await page.locator("[popovertarget], form.act, #chosen").count(), 0, path);
  }
  assert.equal(await page.locator(".menu a", { hasText: "Keys" }).count(), 0);
  for (const path of ["/keys", "/tenants"]) assert.equal((await page.goto(server.url + path)).status(), 403, path);
  await page.context().close();
});

test("a tenant sees its own, and nothing that is shared", async () => {
  const page = await watched(browser);
  await signIn(page, keys.acme);
  const text = await page.locator("tbody").innerText();
  assert.equal(text.trim().split("\n").filter((line) => line.includes("noop")).length, 1, text);
  const entries = await page.locator(".menu a").allInnerTexts();
  assert.deepEqual(entries, ["Overview", "Jobs", "Dead letters", "Operations", "Runs", "Schedules", "Webhooks"]);
  for (const path of ["/", "/jobs", "/dead", "/operations", "/runs", "/schedules", "/webhooks"]) await visit(page, server.url + path);
  await page.goto(server.url + "/operations");
  const operations = await page.locator("main").innerText();
  assert.match(operations, /cancel queued/);
  assert.doesNotMatch(operations, /between operators|key:/, "who of the operators did it, and why, is theirs");
  for (const path of ["/queues", "/gates", "/workers", "/audit", "/tenants", "/keys", "/jobs?tenant=default"]) {
    assert.equal((await page.goto(server.url + path)).status(), 403, path);
    page.troubles.length = 0;
  }
  await page.context().close();
});

test("what is done is done as the key that signed in", async () => {
  const page = await watched(browser);
  await signIn(page, keys.ops);
  await page.goto(server.url + "/queues");
  await press(page, "tr:has-text('default')", "Pause", { reason: "a deploy" });
  await said(page, /is paused/);
  await page.goto(server.url + "/audit");
  assert.match(await page.locator("[data-live=audit]").innerText(), new RegExp(`queue_paused\\s+key:${keys.ops.split("_")[1]}`));
  await page.context().close();
});

test("a page of somebody else's does nothing", async () => {
  const page = await watched(browser);
  await signIn(page, keys.ops);
  await page.goto(server.url + "/queues");
  const token = await page.locator("[name=_token]").first().inputValue();
  const [cookie] = (await page.context().cookies()).filter((one) => one.name === "__Host-tenure");
  const send = (headers, fields) =>
    fetch(server.url + "/do", {
      method: "POST", redirect: "manual",
      headers: { cookie: `${cookie.name}=${cookie.value}`, "content-type": "application/x-www-form-urlencoded", ...headers },
      body: new URLSearchParams({ _path: "/v1/queues/default/resume", ...fields }),
    }).then((answer) => answer.status);
  assert.equal(await send({ origin: "http://evil.example" }, { _token: token }), 403, "another origin");
  assert.equal(await send({ origin: "null" }, { _token: token }), 403, "no origin that has a name");
  assert.equal(await send({}, { _token: token }), 403, "nobody says where it is from");
  assert.equal(await send({ origin: server.url }, {}), 403, "no token");
  assert.equal(await send({ origin: server.url }, { _token: token.replace(/.$/, (last) => (last === "0" ? "1" : "0")) }), 403, "a wrong token");
  assert.equal(await send({ origin: server.url }, { _token: token, _path: "/do" }), 400, "not a call of the API");
  assert.equal(await send({ origin: server.url, cookie: "" }, { _token: token }), 303, "no session: to the door");
  const queue = async () => (await tenure(server, "queues", "list")).find?.((one) => one.name === "default")?.paused;
  assert.notEqual(await queue(), false, "nothing of this has resumed the queue");
  assert.equal(await send({ origin: server.url }, { _token: token }), 303, "the page's own form");
  const form = { origin: server.url, "content-type": "application/x-www-form-urlencoded" };
  const large = await fetch(server.url + "/sign-in", { method: "POST", headers: form, body: `key=${"x".repeat(5_000)}` });
  assert.equal(large.status, 413, "nobody whom nobody knows sends much");
  const answer = await fetch(server.url + "/");
  const policy = (await fetch(server.url + "/sign-in")).headers.get("content-security-policy");
  assert.ok(answer.redirected);
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.doesNotMatch(policy, /unsafe/);
  await page.context().close();
});
