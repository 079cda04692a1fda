/** Worker: runs handlers under leases, by docs/WORKER-PROTOCOL.md. */
import { beatUntilClosed } from "./beats.js";
import { Claims } from "./claims.js";
import type { Client } from "./client.js";
import { now, sleep } from "./clock.js";
import { Context } from "./context.js";
import { GIVEN_BACK, type Handler, runHandler } from "./endings.js";
import { GivenBack } from "./given_back.js";
import { Problem } from "./errors.js";
import { type Listener, teller } from "./events.js";
import type { Job } from "./job.js";
import { Held, type Lease } from "./lease.js";
import { renewUntilOver, watchDeadline } from "./renewals.js";
import { acquire, report } from "./reports.js";
import { State } from "./state.js";

/** How long handlers that were told to stop have, before their jobs are released under them. */
const LAST_MOMENT_MS = 1000;

/** Times are seconds. */
export interface WorkerOptions {
  /** How many handlers run at once, over all queues. 4 where nothing is said. */
  slots?: number;
  name?: string;
  version?: string;
  /** How long jobs may go on after a stop. 30 where nothing is said. */
  grace?: number;
  /** How long a claim waits for work, at most 30. */
  wait?: number;
  /** For every request but a claim that waits. */
  timeout?: number;
  /** Between tries of a renewal or report. */
  retryEvery?: number;
  /** The first and the longest pause after errors in a row. */
  backoff?: [number, number];
  onEvent?: Listener;
}

export class Worker {
  readonly #client: Client;
  readonly #queues: readonly string[];
  readonly #handlers: Map<string, Handler>;
  readonly #givenBack = new GivenBack();
  readonly #slots: number;
  readonly #names: { name?: string; version?: string };
  readonly #state: State;
  #hasRun = false;

  constructor(client: Client, queues: readonly string[], handlers: Record<string, Handler>, options: WorkerOptions = {}) {
    this.#slots = options.slots ?? 4;
    if (queues.length === 0 || this.#slots < 1) throw new RangeError("a worker needs at least one queue and one slot");
    this.#client = client;
    this.#queues = [...queues];
    this.#handlers = new Map(Object.entries(handlers));
    this.#names = {
      ...(options.name !== undefined && { name: options.name }),
      ...(options.version !== undefined && { version: options.version }),
    };
    const [first, most] = options.backoff ?? [1, 30];
    const pace = {
      waitMs: Math.round((options.wait ?? 20) * 1000),
      timeoutMs: (options.timeout ?? 10) * 1000,
      retryEveryMs: (options.retryEvery ?? 1) * 1000,
      backoffMs: [first * 1000, most * 1000] as [number, number],
      graceMs: (options.grace ?? 30) * 1000,
    };
    this.#state = new State(this.#slots, pace, teller(options.onEvent));
  }

  /** Works until `stop` was called or ordered, then drains and says goodbye. Throws the `Problem` that made work impossible. */
  async run(): Promise<void> {
    if (this.#hasRun) throw new Error("a worker runs once");
    this.#hasRun = true;
    const state = this.#state;
    const register = (abort: AbortSignal) => this.#client.register(this.#queues, this.#slots, { ...this.#names, abort });
    const claims = this.#guard(new Claims(state, this.#queues, register, (lease, jobs) => this.#accept(lease, jobs)).run());
    const beats = this.#guard(beatUntilClosed(state));
    await state.waitUntil(() => state.isStopping);
    await this.#drain();
    // A claim may still be waiting. What it was given meanwhile was released; what it is given from now on
    // the goodbye gives back.
    state.abortCall();
    await claims;
    await this.#sayGoodbye();
    state.close();
    await beats;
    if (state.error !== null) throw state.error;
  }

  /** Returns at once; `run` resolves when all is done. Calling again may only shorten the grace. */
  stop(grace?: number): void {
    this.#state.stop(grace === undefined ? this.#state.pace.graceMs : grace * 1000);
  }

  #accept(lease: Lease, jobs: Job[]): void {
    const state = this.#state;
    if (jobs.length === 0) return;
    for (const job of jobs) {
      const ctx = new Context(lease.number, (ctx, tokens) => acquire(state, lease, job, ctx, tokens));
      lease.hold(new Held(job, lease, ctx));
    }
    state.hold(lease);
    // It may have been forgotten while this lease was on its way.
    if (state.session !== lease.session) state.lose(lease, "unknown_worker");
    void this.#guard(renewUntilOver(state, lease));
    void this.#guard(watchDeadline(state, lease));
    for (const held of lease.held) {
      state.startJob();
      void this.#guard(this.#runJob(held));
    }
  }

  async #runJob(held: Held): Promise<void> {
    const state = this.#state;
    const handler = this.#handlers.get(held.job.kind);
    try {
      let ending = GIVEN_BACK;
      if (!state.isStopping && !held.lease.isLost) {
        if (handler) state.tell({ name: "started", ...held.about });
        ending = handler ? await runHandler(handler, held.job, held.ctx) : this.#givenBack.ending(held.job.id);
      }
      if (held.end()) await report(state, held, ending);
      else state.tell({ name: "refused", ...held.about, code: "released" });
    } finally {
      state.letGo(held);
      state.endJob();
    }
  }

  async #drain(): Promise<void> {
    const state = this.#state;
    await state.waitUntil(() => state.running === 0, () => state.graceEnds);
    for (const held of this.#held()) held.ctx.askToStop("stop");
    const ends = now() + LAST_MOMENT_MS;
    await state.waitUntil(() => state.running === 0, () => ends);
    await Promise.all(this.#held().map((held) => this.#release(held)));
  }

  async #release(held: Held): Promise<void> {
    const { lease, job } = held;
    if (lease.isLost || !held.end()) return;
    try {
      const { verb, body } = GIVEN_BACK;
      const answer = await lease.session.report(lease.number, job.id, verb, body, this.#state.pace.timeoutMs);
      this.#state.tell({ name: "released", ...held.about, detail: answer.state });
    } catch (error) {
      // Said once and not for ever: the goodbye gives back whatever this does not.
      this.#state.tellError("release", error, held.about);
    }
    this.#state.letGo(held);
  }

  async #sayGoodbye(): Promise<void> {
    const { session, pace } = this.#state;
    for (let tries = 0; session !== null && tries < 3; tries += 1) {
      try {
        return await session.goodbye(pace.timeoutMs);
      } catch (error) {
        this.#state.tellError("goodbye", error);
        if (error instanceof Problem && !error.isPassing) return;
      }
      await sleep(pace.retryEveryMs, this.#state.closed);
    }
  }

  #held(): Held[] {
    return [...this.#state.leases.values()].flatMap((lease) => lease.held);
  }

  /** A loop that dies unseen would leave a worker that looks alive. It stops in order and `run` throws. */
  #guard(loop: Promise<void>): Promise<void> {
    return loop.catch((error: unknown) => this.#state.stop(this.#state.pace.graceMs, error));
  }
}
