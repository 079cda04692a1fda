/** How handlers end, and what is then reported. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { GivenBack } from "../src/given_back.js";
import { Canceled, Fail, Snooze } from "../src/index.js";
import { Signal, untilCanceled, worked } from "./case.js";
import { job, problem } from "./fake.js";

worked("a job is claimed, run and completed", async (fake, on) => {
  fake.offer(job("j1", "work", { order: 42 }));
  on.start(
    {
      work: (job, ctx) => {
        ctx.usage("bytes", 1000);
        ctx.usage("bytes", 24);
        return { payload: job.payload, fence: ctx.fence, attempt: job.attempt, queue: job.queue };
      },
    },
    { slots: 3, name: "mailer", version: "1.4.0" },
  );
  const event = await on.waitEvent("completed");
  const [register] = fake.heard("register");
  assert.equal(register?.headers.authorization, "Bearer key");
  assert.equal(register?.headers["tenure-worker"], undefined);
  assert.equal(register?.body.name, "mailer");
  assert.deepEqual(register?.body.queues, [{ queue: "mail", slots: 3 }]);
  const [claim] = fake.heard("claim");
  assert.deepEqual(claim?.body, { queues: ["mail"], limit: 3, wait_ms: 5000 });
  assert.equal(claim?.headers["tenure-worker"], "tnw_1");
  const [complete] = fake.heard("complete");
  assert.equal(complete?.path, "/v1/leases/101/jobs/j1/complete");
  const result = { payload: { order: 42 }, fence: 101, attempt: 1, queue: "mail" };
  assert.deepEqual(complete?.body, { result, usage: { bytes: 1024 } });
  assert.deepEqual(event, { name: "completed", lease: 101, job: "j1", kind: "work", detail: "after complete" });
});

worked("handlers run at the same time, and claims ask for free slots only", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"), job("j2"));
  on.start({ work: () => go.wait }, { slots: 3 });
  await on.waitEvent("started", 2);
  const claims = await fake.waitFor("claim", 2);
  assert.deepEqual(
    claims.map((claim) => claim.body.limit),
    [3, 1],
  );
  go.set();
  await on.waitEvent("completed", 2);
});

worked("any error is a transient failure, named by its class", async (fake, on) => {
  class OrderMissing extends Error {}
  fake.offer(job("j1"), job("j2", "string"));
  on.start({
    work: async () => {
      throw new OrderMissing("order 42");
    },
    string: () => {
      throw "a string";
    },
  });
  const bodies = (await fake.waitFor("fail", 2)).map((fail) => fail.body);
  assert.deepEqual(bodies.find((body) => body.code === "OrderMissing"), { class: "transient", message: "order 42", code: "OrderMissing" });
  assert.deepEqual(bodies.find((body) => body.code === "string"), { class: "transient", message: "a string", code: "string" });
});

worked("a fail says all that it was given", async (fake, on) => {
  const fails: Record<string, Fail> = {
    transient: Fail.transient("slow", { code: "timeout", details: { after: 3 }, retryIn: 1.5 }),
    permanent: Fail.permanent("no such order"),
    dead: Fail.dead("poison", { code: "bad" }),
  };
  fake.offer(...Object.keys(fails).map((name) => job(name)));
  on.start({
    work: (job) => {
      throw fails[job.id];
    },
  });
  const heard = (await fake.waitFor("fail", 3)).map((fail) => [fail.path.split("/")[5], fail.body]);
  assert.deepEqual(Object.fromEntries(heard), {
    transient: { class: "transient", message: "slow", code: "timeout", details: { after: 3 }, retry_in_ms: 1500 },
    permanent: { class: "permanent", message: "no such order" },
    dead: { class: "dead", message: "poison", code: "bad" },
  });
});

worked("a snooze says for how long, and what the gate should know", async (fake, on) => {
  fake.offer(job("j1"));
  on.start({
    work: (_job, ctx) => {
      ctx.holdGate(30);
      ctx.gateHealth("unhealthy");
      throw new Snooze(2.5);
    },
  });
  const [snooze] = await fake.waitFor("snooze");
  assert.deepEqual(snooze?.body, { delay_ms: 2500, gate: { hold_ms: 30_000, health: "unhealthy" } });
});

worked("an unknown kind is released for other workers", async (fake, on) => {
  fake.offer(job("j1", "stranger"), job("j2", "constructor"));
  on.start({});
  const releases = await fake.waitFor("release", 2);
  for (const release of releases) assert.deepEqual(release.body, { delay_ms: 15_000 });
});

test("an unknown kind waits longer each time", () => {
  const givenBack = new GivenBack();
  const waits = Array.from({ length: 10 }, () => Number(givenBack.ending("j1").body["delay_ms"]) / 1_000);
  assert.deepEqual(waits, [15, 15, 15, 15, 30, 60, 120, 240, 300, 300]);
  assert.deepEqual(givenBack.ending("j2").body, { delay_ms: 15_000 });
});

worked("a job that is asked to cancel stops and says cancel", async (fake, on) => {
  const whys: unknown[] = [];
  fake.ttlMs = 900;
  fake.cancel = ["j1"];
  fake.offer(job("j1"));
  on.start({
    work: async (job, ctx) => {
      await untilCanceled(job, ctx);
      whys.push(ctx.why, ctx.canceled.reason instanceof Canceled);
      throw new Canceled("stopped half way");
    },
  });
  const [cancel] = await fake.waitFor("cancel");
  assert.deepEqual(cancel?.body, { message: "stopped half way" });
  assert.deepEqual(whys, ["cancel", true]);
});

worked("whatever a canceled handler throws is a cancel", async (fake, on) => {
  fake.ttlMs = 900;
  fake.cancel = ["j1"];
  fake.offer(job("j1"));
  on.start({
    work: async (job, ctx) => {
      await untilCanceled(job, ctx);
      throw new RangeError("connection closed");
    },
  });
  await on.waitEvent("canceled");
  assert.deepEqual(on.reports(), ["cancel"]);
});

worked("acquire asks again until it is answered, and then waits", async (fake, on) => {
  fake.script("acquire", problem(503, "busy"));
  fake.offer(job("j1", "work", null, "mailer"));
  on.start({
    work: async (_job, ctx) => {
      await ctx.acquire(2);
      return "let through";
    },
  });
  const [complete] = await fake.waitFor("complete");
  assert.deepEqual(complete?.body, { result: "let through" });
  assert.deepEqual(
    fake.heard("acquire").map((request) => request.body),
    [{ tokens: 2 }, { tokens: 2 }],
  );
});

worked("acquire ends the handler as a snooze when the gate is closed", async (fake, on) => {
  fake.script("acquire", { status: 200, body: { wait_ms: null, snooze_ms: 60_000 } });
  fake.offer(job("j1", "work", null, "mailer"));
  on.start({ work: (_job, ctx) => ctx.acquire() });
  const [snooze] = await fake.waitFor("snooze");
  assert.deepEqual(snooze?.body, { delay_ms: 60_000 });
  assert.equal(fake.heard("acquire").length, 1);
});

worked("acquire asks nobody for a job without a gate", async (fake, on) => {
  fake.offer(job("j1"));
  on.start({ work: (_job, ctx) => ctx.acquire() });
  await on.waitEvent("completed");
  assert.deepEqual(fake.heard("acquire"), []);
});

worked("a result that is not JSON, or is refused as invalid, is a permanent failure", async (fake, on) => {
  const round: Record<string, unknown> = {};
  round["self"] = round;
  const results: Record<string, unknown> = { bigint: 1n, round, big: "x".repeat(2 ** 21), invalid: 1 };
  fake.script("complete", problem(422, "invalid", { field: "result" }));
  fake.offer(...Object.keys(results).map((name) => job(name)));
  on.start({ work: (job) => results[job.id] });
  const fails = await fake.waitFor("fail", 4);
  for (const fail of fails) assert.equal(fail.body.class, "permanent");
  assert.match(fails.find((fail) => fail.path.includes("/invalid/"))?.body.message, /result/);
});

worked("details that are not JSON do not change the class", async (fake, on) => {
  fake.offer(job("j1"));
  on.start({
    work: () => {
      throw Fail.transient("slow", { details: 1n });
    },
  });
  const [fail] = await fake.waitFor("fail");
  assert.deepEqual(fail?.body, { class: "transient", message: "slow" });
});
