/** Who holds what: lost answers, renewals, deadlines and refusals. */
import assert from "node:assert/strict";

import { Claims } from "../src/claims.js";
import { Canceled, Client } from "../src/index.js";
import type { Lease } from "../src/lease.js";
import { renewUntilOver } from "../src/renewals.js";
import { State } from "../src/state.js";
import { Signal, untilCanceled, worked } from "./case.js";
import { BEHAVE, DROP, HANG, job, problem } from "./fake.js";

worked("after a lost claim reply the next claim says what is held", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"));
  fake.script("claim", BEHAVE, DROP);
  on.start({ work: () => go.wait }, { slots: 3 });
  await fake.waitFor("claim", 3);
  fake.offer(job("j2"));
  const claims = await fake.waitFor("claim", 4);
  go.set();
  assert.deepEqual(
    claims.map((claim) => claim.body.holding),
    [undefined, undefined, [101], undefined],
  );
});

worked("a worker that holds nothing says so after an error", async (fake, on) => {
  fake.script("claim", DROP, problem(503, "busy"));
  on.start({});
  const claims = await fake.waitFor("claim", 3);
  assert.deepEqual(
    claims.map((claim) => claim.body.holding),
    [undefined, [], []],
  );
  fake.offer(job("j1"));
  assert.equal("holding" in (await fake.waitFor("claim", 4))[3]?.body, false);
});

worked("a claim reply that cannot be read is a lost one", async (fake, on) => {
  fake.script("claim", { status: 200, body: { hello: "from the proxy" } });
  on.start({});
  assert.deepEqual((await fake.waitFor("claim", 2))[1]?.body.holding, []);
});

worked("renewals go on while a handler runs", async (fake, on) => {
  const go = new Signal();
  fake.ttlMs = fake.renewedTtlMs = 600;
  fake.offer(job("j1"));
  const started = performance.now();
  on.start({ work: (_job, ctx) => go.wait.then(() => !ctx.isCanceled) });
  const renewals = await fake.waitFor("renew", 4);
  assert.ok(performance.now() - started > 600); // The first deadline is past, and the lease still good.
  for (const renewal of renewals) assert.equal(renewal.path, "/v1/leases/101/renew");
  go.set();
  const [complete] = await fake.waitFor("complete");
  assert.deepEqual(complete?.body, { result: true });
  await on.waitEvent("completed");
});

worked("a deadline counts from when the claim or renewal was sent", async (fake) => {
  const pace = { waitMs: 5000, timeoutMs: 2000, retryEveryMs: 10, backoffMs: [10, 20] as [number, number], graceMs: 0 };
  let order: string | undefined;
  const state = new State(1, pace, (event) => {
    order = event.code;
    fake.changed();
  });
  const register = () => new Client(fake.url, "key").register(["mail"], 1);
  fake.ttlMs = 900;
  fake.waitedMs = 300;
  fake.offer(job("j1"));
  const lease = await new Promise<Lease>((resolve) => {
    const accept = (accepted: Lease) => {
      state.stop(0); // One lease is enough.
      resolve(accepted);
    };
    void new Claims(state, ["mail"], register, accept).run();
  });
  // What was heard had been sent before, and is answered later.
  const heardAt = fake.heard("claim")[0]?.heardAt ?? 0;
  assert.ok(lease.deadline <= heardAt + 1200);
  assert.ok(lease.deadline > heardAt + 900);
  fake.giveOrder("quiet"); // Told after the renewal was applied.
  const renewing = renewUntilOver(state, lease);
  await fake.until(() => order === "quiet", () => "the renewal was not applied");
  const [renewal] = fake.heard("renew");
  lease.lose("goodbye");
  await renewing;
  assert.ok(lease.deadline > (renewal?.heardAt ?? 0) + 50_000);
  assert.ok(lease.deadline <= (renewal?.heardAt ?? 0) + 60_000);
});

worked("a lease lost at renewal stops the handler, and nothing is reported", async (fake, on) => {
  fake.ttlMs = 900;
  fake.script("renew", problem(409, "lease_lost"));
  fake.offer(job("j1"));
  on.start({ work: untilCanceled });
  assert.equal((await on.waitEvent("lost")).code, "lease_lost");
  const refused = await on.waitEvent("refused");
  assert.deepEqual([refused.code, refused.detail], ["lease_lost", "lease_lost"]);
  await on.finish();
  assert.deepEqual(on.reports(), []);
});

worked("a renewal that fails for now is tried again", async (fake, on) => {
  const go = new Signal();
  fake.ttlMs = 900;
  fake.script("renew", problem(503, "busy"), DROP, problem(500, "internal"));
  fake.offer(job("j1"));
  on.start({ work: () => go.wait });
  await fake.waitFor("renew", 4);
  go.set();
  await on.waitEvent("completed");
});

worked("the local deadline fences when no renewal is answered", async (fake, on) => {
  fake.ttlMs = 300;
  fake.forever("renew", HANG);
  fake.offer(job("j1"));
  on.start({ work: untilCanceled });
  assert.equal((await on.waitEvent("lost")).code, "deadline");
  assert.equal((await on.waitEvent("refused")).detail, "deadline");
  await on.finish();
  assert.deepEqual(on.reports(), []);
});

worked("a handler that blocks the event loop is fenced by the clock", async (fake, on) => {
  fake.ttlMs = 100;
  fake.offer(job("j1"));
  on.start({
    work: () => {
      const blocked = performance.now();
      while (performance.now() - blocked < 150); // Neither a renewal nor the deadline's timer gets a turn.
      return "stale";
    },
  });
  assert.equal((await on.waitEvent("refused")).detail, "deadline");
  await on.finish();
  assert.deepEqual(on.reports(), []);
});

worked("what the server waited for work is not the time of the lease", async (fake, on) => {
  fake.ttlMs = 0;
  fake.waitedMs = 60_000;
  fake.offer(job("j1"));
  on.start({ work: () => null });
  await on.waitEvent("completed");
});

worked("a lease that came after its own time is not worked on", async (fake, on) => {
  fake.ttlMs = 0;
  fake.offer(job("j1"));
  on.start({ work: () => null });
  assert.equal((await on.waitEvent("refused")).detail, "deadline");
  await on.finish();
  assert.deepEqual(on.reports(), []);
  assert.equal(on.events.some((event) => event.name === "started"), false);
});

worked("a refused completion is dropped and told", async (fake, on) => {
  fake.script("complete", problem(409, "lease_lost"));
  fake.offer(job("j1"));
  on.start({ work: () => null }, { slots: 1 });
  const refused = await on.waitEvent("refused");
  assert.deepEqual(refused, { name: "refused", lease: 101, job: "j1", kind: "work", code: "lease_lost", detail: "the detail of lease_lost" });
  await fake.waitFor("claim", 2); // The slot is free again.
  await on.finish();
  assert.deepEqual(on.reports(), ["complete"]);
});

worked("a report is repeated until it is answered", async (fake, on) => {
  const repeated = { status: 200, body: { job: "j1", state: "succeeded", repeated: true } };
  fake.script("complete", problem(503, "busy"), DROP, repeated);
  fake.offer(job("j1"));
  on.start({ work: () => ({ mail: 7 }) });
  assert.equal((await on.waitEvent("completed")).detail, "succeeded");
  await on.finish();
  assert.deepEqual(
    fake.heard("complete").map((request) => request.body),
    Array(3).fill({ result: { mail: 7 } }),
  );
  assert.deepEqual(on.reports(), ["complete", "complete", "complete"]);
});

worked("a report is not repeated past the deadline", async (fake, on) => {
  fake.ttlMs = 300;
  fake.forever("renew", DROP);
  fake.forever("complete", problem(503, "busy"));
  fake.offer(job("j1"));
  on.start({ work: () => null }, { slots: 1 });
  assert.equal((await on.waitEvent("refused")).detail, "deadline");
  const said = fake.heard("complete").length;
  assert.ok(said > 1);
  await fake.waitFor("claim", 2);
  // The last one may have been sent just before the deadline and heard just after it.
  assert.ok(fake.heard("complete").length <= said + 1);
});

worked("an unknown worker drops what it holds and registers again", async (fake, on) => {
  fake.offer(job("j1"));
  on.start({ work: untilCanceled, next: () => null }, { slots: 2 });
  await on.waitEvent("started");
  fake.forgetWorkers();
  assert.equal((await on.waitEvent("lost")).code, "unknown_worker");
  await on.waitEvent("refused");
  await fake.waitFor("register", 2);
  fake.offer(job("j2", "next"));
  const [complete] = await fake.waitFor("complete");
  assert.equal(complete?.headers["tenure-worker"], "tnw_3");
  assert.match(complete?.path ?? "", /\/j2\//);
});

worked("an unknown worker that only renews registers again", async (fake, on) => {
  fake.ttlMs = 900;
  fake.script("renew", problem(401, "unknown_worker"));
  fake.offer(job("j1"));
  on.start({ work: untilCanceled }, { slots: 1 });
  await on.waitEvent("refused");
  await fake.waitFor("register", 2);
  assert.deepEqual(on.reports(), []);
});

worked("a canceled handler of a lost lease reports nothing", async (fake, on) => {
  fake.ttlMs = 900;
  fake.script("renew", problem(409, "lease_lost"));
  fake.offer(job("j1"));
  on.start({
    work: async (job, ctx) => {
      await untilCanceled(job, ctx);
      throw new Canceled();
    },
  });
  await on.waitEvent("refused");
  await on.finish();
  assert.deepEqual(on.reports(), []);
});
