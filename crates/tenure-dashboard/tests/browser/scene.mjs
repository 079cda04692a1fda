// A server with something on every page; wherever a text is free it is hostile.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Would set a mark that the tests look for, if any of it became markup.
export const HOSTILE = `"><img src=x onerror="window.broken=1"><script>window.broken=1</script>'\u202e`;

const binary = process.env.TENURE;
if (!binary) throw new Error("TENURE says which binary to test; ./x browser sets it");

// A server of this program on a file of its own. `verb` is `dev` (nobody needs a key) or `server`.
export async function serve(verb) {
  const folder = mkdtempSync(join(tmpdir(), "tenure-browser-"));
  const database = join(folder, "tenure.db");
  const child = spawn(binary, ["--database", database, "--json", verb, "--listen", "127.0.0.1:0", "--grace", "1s"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  const url = await new Promise((done, failed) => {
    let out = "";
    child.stdout.on("data", (text) => {
      out += text;
      if (out.includes("\n")) done(JSON.parse(out.slice(0, out.indexOf("\n"))).url);
    });
    child.on("exit", () => failed(new Error(`the server ended: ${log}`)));
  });
  const stop = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, database, folder, stop };
}

// A demo on a terminal of its own: without one it would end by itself.
export function demo(command) {
  const child = spawn("script", ["--quiet", "--flush", "--return", "--command", `${binary} ${command}`, "/dev/null"], { stdio: ["ignore", "pipe", "ignore"] });
  let seen = "";
  child.stdout.on("data", (text) => (seen += text));
  const end = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGINT");
    await ended;
  };
  return { seen: () => seen, end };
}

// Runs the command line on a server's file; answers what it printed as JSON.
export async function tenure(server, ...args) {
  const child = spawn(binary, ["--database", server.database, "--json", ...args], { cwd: server.folder });
  let out = "";
  let err = "";
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (err += text));
  const code = await new Promise((done) => child.on("exit", done));
  if (code !== 0) throw new Error(`tenure ${args.join(" ")}: ${code} ${err}`);
  return out.trim() ? JSON.parse(out.trim().split("\n").at(-1)) : null;
}

// Calls the API.
export async function call(server, method, path, body, more = {}) {
  const headers = { "content-type": "application/json", ...more };
  const answer = await fetch(server.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

// Asks until an answer will do, twenty times a second.
export async function until(what, look, seconds = 30) {
  for (let tries = 0; tries < 20 * seconds; tries += 1) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`it never happened: ${what}`);
}

// Receives webhooks: everything is well but for /broken.
export async function receiver() {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(request.url.startsWith("/broken") ? 500 : 204).end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

// Something on every page. Answers the ids that pages are named by.
export async function furnish(server, hooks) {
  const job = (body) => call(server, "POST", "/v1/jobs", body).then((made) => made.id);
  const reason = HOSTILE;
  const ids = {};
  const hook = (path) => call(server, "POST", "/v1/webhooks", { url: hooks.url + path, events: ["*"], reason });
  ids.endpoint = (await hook("/hook?q=%22%3E%3Cscript%3E")).id;
  ids.broken = (await hook("/broken")).id;
  ids.dead = [];
  for (let n = 0; n < 3; n += 1) ids.dead.push(await job({ kind: "fail", payload: { how: "dead", message: HOSTILE } }));
  ids.failed = await job({ kind: "fail", payload: { how: "permanent", message: HOSTILE } });
  ids.succeeded = await job({ kind: "noop", payload: { note: HOSTILE } });
  ids.retryable = await job({ kind: "fail", payload: { message: HOSTILE }, max_attempts: 9, backoff: "fixed 1h" });
  ids.running = await job({ kind: "sleep", payload: { for: "1h" } });
  ids.later = await job({ kind: "noop", payload: { note: HOSTILE }, delay_ms: 3_600_000 });
  ids.spare = [];
  for (let n = 0; n < 3; n += 1) ids.spare.push(await job({ kind: "noop", payload: { n }, delay_ms: 3_600_000 }));
  await call(server, "PUT", "/v1/rules/source:ebay", { rate: "30/m", concurrency: 2, breaker_failures: 5, breaker_cooldown_ms: 60_000, reason });
  await call(server, "POST", "/v1/gates/source:ebay/trip", { reason });
  await call(server, "POST", "/v1/gates/source:amazon/pause", { reason });
  ids.gated = await job({ kind: "noop", payload: {}, gate: "source:ebay" });
  ids.waits = await job({ kind: "noop", payload: {}, gate: "source:amazon" });
  await call(server, "PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", kind: "noop", payload: { note: HOSTILE }, reason });
  await call(server, "POST", "/v1/schedules/nightly/pause", { reason });
  const pages = ["a", "b", "c"].map((name) => ({ name, limit: 10, expected: 40, job: { kind: "fail", payload: { how: "dead", message: HOSTILE }, max_attempts: 1 } }));
  ids.run = (await call(server, "POST", "/v1/runs", { source: HOSTILE, owner: HOSTILE, partitions: pages, consolidate: { kind: "noop", payload: {} } })).id;
  ids.open = (await call(server, "POST", "/v1/runs", { source: "open ingest", sealed: false, items: [{ kind: "sleep", payload: { for: "1h" } }] })).id;
  await call(server, "POST", "/v1/queues/default/pause", { reason });
  await call(server, "POST", "/v1/queues/default/resume", { reason });
  await call(server, "PUT", "/v1/queues/idle", { lease_ttl_ms: 60_000 });
  const remote = await call(server, "POST", "/v1/workers", { name: "remote", version: HOSTILE, host: HOSTILE, queues: [{ queue: "idle", slots: 3 }] });
  await call(server, "POST", "/v1/webhooks", { reason });
  ids.result = await job({ kind: "report", queue: "idle", payload: {}, callback_url: `${hooks.url}/done?q=%22%3E%3Cscript%3E` });
  const token = { "tenure-worker": remote.token };
  const { lease } = (await call(server, "POST", "/v1/leases", { queues: ["idle"], limit: 1 }, token)).lease;
  await call(server, "POST", `/v1/leases/${lease}/jobs/${ids.result}/complete`, { result: { note: HOSTILE } }, token);
  await call(server, "PUT", "/v1/tenants/acme", { quota: 100 });
  await call(server, "POST", "/v1/keys", { name: HOSTILE, scopes: ["read"], tenant: "acme", reason });
  await call(server, "POST", "/v1/jobs/" + ids.spare[0] + "/cancel", { reason });
  ids.operation = (await call(server, "POST", "/v1/operations", { act: "cancel", state: "queued", kind: "nothing-of-it", name: HOSTILE, reason })).id;
  await until("the jobs have ended", async () => (await call(server, "GET", `/v1/jobs/${ids.dead[2]}`)).state === "dead");
  await until("the run has failed", async () => (await call(server, "GET", `/v1/runs/${ids.run}`)).state === "failed");
  ids.delivery = (await until("something was delivered", async () => (await call(server, "GET", "/v1/deliveries")).items[0])).id;
  return ids;
}
