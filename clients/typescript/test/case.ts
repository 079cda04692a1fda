/** WorkerCase: a worker that runs against a fake server, and its events. */
import { test } from "node:test";

import { Client, type Context, type Event, type Handler, type Job, Worker, type WorkerOptions } from "../src/index.js";
import { Fake } from "./fake.js";

/** A test with a case of its own, whose worker and server end with it. */
export function worked(name: string, run: (fake: Fake, on: WorkerCase) => Promise<void>): void {
  test(name, async () => {
    const fake = await new Fake().open();
    const on = new WorkerCase(fake);
    try {
      await run(fake, on);
    } finally {
      await on.finish();
      await fake.close();
    }
  });
}

export class WorkerCase {
  readonly events: Event[] = [];
  worker: Worker | null = null;
  #ended: Promise<unknown> = Promise.resolve(null);

  constructor(readonly fake: Fake) {}

  start(handlers: Record<string, Handler>, options: WorkerOptions = {}): Worker {
    const onEvent = (event: Event) => {
      this.events.push(event);
      this.fake.changed();
    };
    const pace: WorkerOptions = { wait: 5, timeout: 2, retryEvery: 0.01, backoff: [0.01, 0.02] };
    this.worker = new Worker(new Client(this.fake.url, "key"), ["mail"], handlers, { ...pace, onEvent, ...options });
    this.#ended = this.worker.run().then(
      () => null,
      (error: unknown) => error,
    );
    return this.worker;
  }

  async finish(grace = 0): Promise<void> {
    this.worker?.stop(grace);
    await this.end();
  }

  /** What `run` threw, or null, once the worker has ended. */
  async end(): Promise<unknown> {
    let hasEnded = false;
    void this.#ended.then(() => {
      hasEnded = true;
      this.fake.changed();
    });
    await this.fake.until(
      () => hasEnded,
      () => "the worker did not end",
    );
    return this.#ended;
  }

  async waitEvent(name: string, count = 1): Promise<Event> {
    const found = () => this.events.filter((event) => event.name === name);
    await this.fake.until(
      () => found().length >= count,
      () => `told ${JSON.stringify(this.events)}, not ${count} times ${name}`,
    );
    return found()[count - 1] as Event;
  }

  reports(): string[] {
    return this.fake.heard("complete", "fail", "snooze", "release", "cancel").map((request) => request.verb);
  }
}

/** A promise and how to resolve it. */
export class Signal {
  set!: () => void;
  readonly wait = new Promise<void>((resolve) => (this.set = resolve));
}

/** A handler that runs until it is told to stop. */
export async function untilCanceled(_job: Job, ctx: Context): Promise<string> {
  await new Promise<void>((resolve) => {
    if (ctx.isCanceled) resolve();
    ctx.canceled.addEventListener("abort", () => resolve());
  });
  return "too late";
}
