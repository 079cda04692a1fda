/** What a producer says, and how refusals and silence are told. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Problem, Unreachable } from "../src/index.js";
import { DROP, Fake, HANG, problem } from "./fake.js";

const CREATED = { status: 201, body: { id: "j1", answer: "created", state: "queued", later: true } };

function produced(name: string, run: (fake: Fake, client: Client) => Promise<void>): void {
  test(name, async () => {
    const fake = await new Fake().open();
    try {
      await run(fake, new Client(fake.url, "key"));
    } finally {
      await fake.close();
    }
  });
}

produced("a job is enqueued with what was said and nothing else", async (fake, client) => {
  fake.script("produce", CREATED);
  const enqueued = await client.enqueue(
    "invoice.send",
    { order: 42 },
    {
      queue: "mail",
      runAt: new Date("2026-11-16T12:00:00Z"),
      backoff: "fixed 5m",
      unique: { key: "invoice:42", policy: "unless_failed" },
      trace: "00-ab-cd-01",
      idempotencyKey: "k1",
    },
  );
  assert.deepEqual(enqueued, { id: "j1", created: true, state: "queued" });
  const [request] = fake.requests;
  assert.deepEqual([request?.method, request?.path], ["POST", "/v1/jobs"]);
  assert.equal(request?.headers["idempotency-key"], "k1");
  assert.equal(request?.headers.authorization, "Bearer key");
  assert.equal(request?.headers["content-type"], "application/json");
  assert.deepEqual(request?.body, {
    kind: "invoice.send",
    payload: { order: 42 },
    queue: "mail",
    run_at: "2026-11-16T12:00:00.000Z",
    backoff: "fixed 5m",
    unique: "invoice:42",
    unique_policy: "unless_failed",
    trace: "00-ab-cd-01",
  });
});

produced("a unique key is a string with a policy or a window", async (fake, client) => {
  fake.forever("produce", CREATED);
  await client.enqueue("x", undefined, { unique: "k" });
  await client.enqueue("x", undefined, { unique: { key: "k", policy: "forever" } });
  await client.enqueue("x", undefined, { unique: { key: "k", window: 0.5 } });
  assert.deepEqual(
    fake.requests.map(({ body }) => body),
    [
      { kind: "x", unique: "k" },
      { kind: "x", unique: "k", unique_policy: "forever" },
      { kind: "x", unique: "k", unique_policy: "window:500ms" },
    ],
  );
});

produced("many jobs are one request", async (fake, client) => {
  const jobs = [
    { id: "a", answer: "created", state: "queued" },
    { id: "b", answer: "found", state: "running" },
    { id: "c", answer: "found", state: null }, // It was pruned, and only its key is left.
  ];
  fake.script("produce", { status: 200, body: { jobs } });
  const enqueued = await client.enqueueMany([
    { kind: "x", payload: 1 },
    { kind: "y", priority: 3, delayMs: 5, maxAttempts: 2 },
    { kind: "z", payload: null },
  ]);
  assert.deepEqual(enqueued, [
    { id: "a", created: true, state: "queued" },
    { id: "b", created: false, state: "running" },
    { id: "c", created: false, state: null },
  ]);
  assert.equal(fake.requests[0]?.path, "/v1/jobs/batch");
  assert.deepEqual(fake.requests[0]?.body, {
    jobs: [
      { kind: "x", payload: 1 },
      { kind: "y", priority: 3, delay_ms: 5, max_attempts: 2 },
      { kind: "z", payload: null },
    ],
  });
});

produced("a job is shown, canceled and requeued by its id", async (fake, client) => {
  const answers = [{ id: "j/1", state: "dead" }, { id: "j/1", canceled: "now" }, { id: "j/1", state: "queued" }];
  fake.script("produce", ...answers.map((body) => ({ status: 200, body })));
  assert.equal((await client.show("j/1")).state, "dead");
  assert.equal(await client.cancel("j/1", { force: true, reason: "by mistake" }), "now");
  await client.requeue("j/1");
  assert.deepEqual(
    fake.requests.map(({ method, path, body }) => [method, path, body]),
    [
      ["GET", "/v1/jobs/j%2F1", null],
      ["POST", "/v1/jobs/j%2F1/cancel", { force: true, reason: "by mistake" }],
      ["POST", "/v1/jobs/j%2F1/requeue", {}],
    ],
  );
});

produced("a refusal is a problem", async (fake, client) => {
  fake.script("produce", problem(422, "invalid", { field: "kind" }), { status: 503, headers: { "Retry-After": "7" } });
  await assert.rejects(client.enqueue(""), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.status, error.code, error.field, error.detail], [422, "invalid", "kind", "the detail of invalid"]);
    return !error.isPassing;
  });
  await assert.rejects(client.enqueue("x"), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.code, error.retryAfter], ["http_503", 7]);
    return error.isPassing;
  });
});

produced("silence is unreachable", async (fake, client) => {
  fake.script("produce", DROP, HANG);
  await assert.rejects(client.show("j1"), Unreachable);
  await assert.rejects(new Client(fake.url, "key", { timeout: 0.05 }).show("j1"), Unreachable);
  await fake.close();
  await assert.rejects(client.show("j1"), Unreachable);
});

produced("connections are kept", async (fake, client) => {
  fake.forever("produce", { status: 200, body: { id: "j1" } });
  for (let i = 0; i < 10; i += 1) await client.show("j1");
  // `fetch` may open a second one when asked again before it has noticed that the first is free.
  const ports = new Set(fake.requests.map((request) => request.port));
  assert.ok(ports.size <= 2, `${ports.size} connections`);
});

test("an address that is none is refused at once", () => {
  assert.throws(() => new Client("tenure.example", "key"), TypeError);
  assert.throws(() => new Client("ftp://tenure.example", "key"), TypeError);
});
