/**
 * Lease: the time-bound right to run what was claimed together.
 *
 * A lease is lost in one of four ways: the server says `lease_lost`, the server no longer knows the worker,
 * its deadline passes with no renewal answered, or the worker has said goodbye.
 * Loss is final: a renewal that is answered later revives nothing.
 *
 * The deadline counts from when the claim or renewal was *sent*, by this process's monotonic clock,
 * plus, for a claim, what the server says that it waited for work.
 * `isLost` asks the clock each time, because a blocked event loop or a frozen process holds up the timer that watches it.
 */
import { now } from "./clock.js";
import type { Context } from "./context.js";
import type { Job } from "./job.js";
import type { Session } from "./session.js";

export class Lease {
  deadline: number;
  loss: string | null = null;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #held = new Map<string, Held>();

  constructor(
    readonly session: Session,
    readonly number: number,
    began: number,
    public ttlMs: number,
  ) {
    this.deadline = began + ttlMs;
  }

  get isLost(): boolean {
    return this.loss !== null || now() >= this.deadline;
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  get leftMs(): number {
    return Math.max(0, this.deadline - now());
  }

  /** Aborted when the lease is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Aborted when it is lost, or when every job has ended: nothing is left to renew. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  get held(): Held[] {
    return [...this.#held.values()];
  }

  extend(sent: number, ttlMs: number): void {
    if (this.isLost) return;
    this.ttlMs = ttlMs;
    this.deadline = sent + ttlMs;
  }

  /** Tells the handlers to stop. False when the lease was over before. */
  lose(loss: string): boolean {
    if (this.isOver) return false;
    this.loss = loss;
    this.#lost.abort();
    this.#over.abort();
    for (const held of this.held) held.ctx.askToStop("lost");
    return true;
  }

  hold(held: Held): void {
    this.#held.set(held.job.id, held);
  }

  letGo(held: Held): void {
    this.#held.delete(held.job.id);
    if (this.#held.size === 0) this.#over.abort();
  }

  askToCancel(jobs: string[]): void {
    for (const job of jobs) this.#held.get(job)?.ctx.askToStop("cancel");
  }
}

/** One job under its lease. It is ended once: by its handler, or by the worker that stops. */
export class Held {
  #isEnded = false;

  constructor(
    readonly job: Job,
    readonly lease: Lease,
    readonly ctx: Context,
  ) {}

  /** Members of every event about it. */
  get about(): { lease: number; job: string; kind: string } {
    return { lease: this.lease.number, job: this.job.id, kind: this.job.kind };
  }

  /** True for the first caller, who then reports. */
  end(): boolean {
    const isFirst = !this.#isEnded;
    this.#isEnded = true;
    return isFirst;
  }
}
