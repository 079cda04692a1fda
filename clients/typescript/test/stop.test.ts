/** Orders, graceful stop, and the end of the process. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { Canceled, Problem } from "../src/index.js";
import { Signal, untilCanceled, worked } from "./case.js";
import { DROP, job, problem } from "./fake.js";

worked("a quiet worker finishes what it has, claims nothing, and goes on when told", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"));
  on.start({ work: () => go.wait }, { slots: 2 });
  await on.waitEvent("started");
  await fake.waitFor("claim", 2); // A slot is free, so one more is on its way.
  fake.giveOrder("quiet");
  assert.equal((await on.waitEvent("ordered")).code, "quiet");
  go.set();
  await on.waitEvent("completed");
  const claims = fake.heard("claim").length;
  await fake.waitFor("beat", fake.heard("beat").length + 3);
  assert.equal(fake.heard("claim").length, claims);
  assert.deepEqual(fake.heard("beat").at(-1)?.body, { state: "idle", running: 0 });
  fake.giveOrder("work");
  await fake.waitFor("claim", claims + 1);
});

worked("a worker that is ordered to stop finishes and says goodbye", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"));
  on.start({ work: () => go.wait }, { slots: 1 });
  await on.waitEvent("started");
  fake.giveOrder("stop");
  await on.waitEvent("ordered");
  go.set();
  assert.equal(await on.end(), null);
  assert.deepEqual(on.reports(), ["complete"]);
  const [goodbye] = fake.heard("goodbye");
  assert.deepEqual([goodbye?.path, goodbye?.headers["tenure-worker"]], ["/v1/workers/1", "tnw_1"]);
  assert.equal(fake.heard("claim").length, 1);
});

worked("an idle worker stops without waiting for its claim", async (fake, on) => {
  on.start({}, { wait: 30 });
  await fake.waitFor("claim");
  await on.finish(30);
  assert.equal(fake.heard("goodbye").length, 1);
});

worked("a graceful stop lets handlers finish", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"));
  const worker = on.start({ work: (_job, ctx) => go.wait.then(() => ctx.isCanceled) });
  await on.waitEvent("started");
  worker.stop(5);
  await fake.waitFor("beat", fake.heard("beat").length + 2);
  assert.equal(fake.heard("beat").at(-1)?.body.state, "draining");
  go.set();
  await on.end();
  assert.deepEqual(fake.heard("complete")[0]?.body, { result: false });
});

worked("what is left after the grace is released", async (fake, on) => {
  const whys: unknown[] = [];
  const go = new Signal();
  fake.offer(job("polite", "polite"), job("stubborn", "stubborn"));
  on.start({
    polite: async (job, ctx) => {
      await untilCanceled(job, ctx);
      whys.push(ctx.why);
      throw new Canceled();
    },
    stubborn: () => go.wait,
  });
  await on.waitEvent("started", 2);
  await on.finish(0);
  const releases = fake.heard("release");
  assert.deepEqual(
    releases.map((release) => [release.path.split("/")[5], release.body]),
    [
      ["polite", { delay_ms: 0 }],
      ["stubborn", { delay_ms: 0 }],
    ],
  );
  assert.deepEqual(whys, ["stop"]);
  assert.deepEqual(
    fake.heard("release", "goodbye").map((request) => request.verb),
    ["release", "release", "goodbye"],
  );
  go.set();
  assert.equal((await on.waitEvent("refused")).job, "stubborn");
  assert.deepEqual(on.reports(), ["release", "release"]);
});

worked("what a claim brings while stopping is released unstarted", async (fake, on) => {
  const go = new Signal();
  fake.offer(job("j1"));
  const worker = on.start({ work: () => go.wait }, { slots: 2 });
  await on.waitEvent("started");
  await fake.waitFor("claim", 2);
  worker.stop(5);
  fake.offer(job("j2"));
  const [release] = await fake.waitFor("release");
  assert.match(release?.path ?? "", /\/j2\//);
  assert.deepEqual(release?.body, { delay_ms: 0 });
  go.set();
  await on.end();
  assert.deepEqual(on.reports().sort(), ["complete", "release"]);
});

worked("the goodbye is said again when it got lost", async (fake, on) => {
  fake.script("goodbye", DROP, problem(503, "busy"));
  on.start({});
  await fake.waitFor("claim");
  await on.finish();
  assert.equal(fake.heard("goodbye").length, 3);
});

worked("registering is tried again, but not with a wrong key", async (fake, on) => {
  fake.script("register", DROP, problem(503, "busy"), problem(401, "unauthorized"));
  on.start({});
  const error = await on.end();
  assert.ok(error instanceof Problem);
  assert.deepEqual([error.status, error.code], [401, "unauthorized"]);
  assert.equal(fake.heard("register").length, 3);
});

worked("a claim that is refused for good ends the worker in order", async (fake, on) => {
  fake.script("claim", problem(422, "invalid", { field: "queues" }));
  on.start({});
  const error = await on.end();
  assert.ok(error instanceof Problem);
  assert.equal(error.field, "queues");
  assert.equal(fake.heard("goodbye").length, 1);
});

worked("the example works, tells its events, and ends well at SIGTERM", async (fake) => {
  const example = fileURLToPath(new URL("../examples/worker.js", import.meta.url));
  const env = { ...process.env, TENURE_URL: fake.url, TENURE_KEY: "key", TENURE_QUEUES: "mail" };
  const child = spawn(process.execPath, [example], { env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  try {
    fake.offer(job("j1", "echo", { a: 1 }));
    const events: any[] = [];
    for await (const line of createInterface(child.stdout)) {
      events.push(JSON.parse(line));
      if (events.at(-1).event === "completed") child.kill("SIGTERM");
    }
    assert.deepEqual(await exited, [0, null]);
    assert.deepEqual(
      events.find((event) => event.event === "started"),
      { event: "started", job: "j1", lease: 101, kind: "echo" },
    );
    assert.deepEqual(fake.heard("complete")[0]?.body, { result: { a: 1 } });
    assert.equal(fake.heard("goodbye").length, 1);
  } finally {
    child.kill("SIGKILL");
  }
});
