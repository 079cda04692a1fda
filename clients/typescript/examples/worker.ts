/**
 * A worker that tells each event as one JSON line.
 *
 *     TENURE_URL=http://127.0.0.1:7400 TENURE_KEY=… node dist/examples/worker.js
 *
 * Kinds: `echo` returns its payload, `sleep` takes {"ms": 500}, `fail` takes {"class": "permanent", "message": "why"}.
 * Also read, if set: TENURE_QUEUES (a,b), TENURE_SLOTS (4), TENURE_NAME, TENURE_GRACE (seconds).
 */
import { setTimeout as pause } from "node:timers/promises";

import { Canceled, Client, type Context, type Event, Fail, type Job, Worker, runUntilSignal } from "../src/index.js";

function echo(job: Job): unknown {
  return job.payload;
}

async function sleep(job: Job, ctx: Context): Promise<unknown> {
  const { ms } = job.payload;
  try {
    await pause(ms, undefined, { signal: ctx.canceled });
  } catch {
    throw new Canceled(`after less than ${ms} ms`);
  }
  return { slept_ms: ms };
}

function fail(job: Job): never {
  const { class: failure = "transient", message = "as asked", code } = job.payload ?? {};
  throw new Fail(failure, message, { code });
}

function tell({ name, job, lease, ...rest }: Event): void {
  console.log(JSON.stringify({ event: name, job, lease, ...rest }));
}

const { TENURE_URL, TENURE_KEY, TENURE_QUEUES, TENURE_SLOTS, TENURE_NAME, TENURE_GRACE } = process.env;
if (!TENURE_URL || !TENURE_KEY) throw new Error("TENURE_URL and TENURE_KEY must be set");
const worker = new Worker(
  new Client(TENURE_URL, TENURE_KEY),
  (TENURE_QUEUES ?? "default").split(","),
  { echo, sleep, fail },
  { slots: Number(TENURE_SLOTS ?? 4), ...(TENURE_NAME && { name: TENURE_NAME }), onEvent: tell },
);
await runUntilSignal(worker, Number(TENURE_GRACE ?? 10));
process.exit(0); // A handler that did not end in time must not keep the process.
