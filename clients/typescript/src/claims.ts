/**
 * Claims: register, then ask for as much work as slots are free, one claim at a time.
 *
 * When the answer of a claim is lost, jobs may be leased to this worker without its knowledge.
 * The next claim then says `holding`, and the server gives everything else back.
 */
import { Backoff } from "./backoff.js";
import { now } from "./clock.js";
import { Problem, Unreachable } from "./errors.js";
import type { Job } from "./job.js";
import { Lease } from "./lease.js";
import type { Claimed, Session } from "./session.js";
import type { State } from "./state.js";

const LIMIT_MAX = 256;

export class Claims {
  readonly #backoff: Backoff;
  #mustSayHolding = false;

  constructor(
    private readonly state: State,
    private readonly queues: readonly string[],
    private readonly register: (abort: AbortSignal) => Promise<Session>,
    private readonly accept: (lease: Lease, jobs: Job[]) => void,
  ) {
    this.#backoff = new Backoff(...state.pace.backoffMs);
  }

  /** Until the worker stops. Throws a problem that trying again would not solve. */
  async run(): Promise<void> {
    const { state } = this;
    while (!state.isStopping) {
      const { session, order, free } = state;
      if (session === null) {
        await this.#begin();
      } else if (order === "work" && free > 0) {
        await this.#claim(session, Math.min(free, LIMIT_MAX));
      } else {
        state.enter(order === "work" ? "polling" : "idle");
        await state.waitUntil(
          () =>
            state.isStopping || state.session !== session || state.order !== order || (order === "work" && state.free > 0),
        );
      }
    }
  }

  async #begin(): Promise<void> {
    this.state.enter("connecting");
    try {
      const session = await this.register(this.state.startCall());
      this.#backoff.reset();
      this.#mustSayHolding = false;
      this.state.begin(session);
    } catch (error) {
      await this.#pauseAfter("register", error);
    }
  }

  async #claim(session: Session, limit: number): Promise<void> {
    const { state, queues } = this;
    const { waitMs, timeoutMs, retryEveryMs } = state.pace;
    state.enter("polling");
    const holding = this.#mustSayHolding ? [...state.leases.keys()] : undefined;
    const sent = now();
    let claimed: Claimed;
    try {
      claimed = await session.claim(queues, limit, { waitMs, holding, timeoutMs, abort: state.startCall() });
    } catch (error) {
      this.#mustSayHolding = true;
      if (error instanceof Problem && error.code === "unknown_worker") return state.forget(session);
      if (error instanceof Unreachable && state.session !== session) return; // It was aborted.
      return this.#pauseAfter("claim", error);
    }
    this.#mustSayHolding = false;
    this.#backoff.reset();
    state.obey(session, claimed.order);
    if (claimed.lease !== null) {
      const { number, ttlMs, waitedMs, jobs } = claimed.lease;
      return this.accept(new Lease(session, number, sent + waitedMs, ttlMs), jobs);
    }
    // A server that does not wait would otherwise be asked without end.
    if (now() - sent < Math.min(waitMs, retryEveryMs) / 2) await this.#sleep(retryEveryMs);
  }

  async #pauseAfter(what: string, error: unknown): Promise<void> {
    if (this.state.isStopping && error instanceof Unreachable) return; // It was aborted.
    if (!(error instanceof Unreachable) && !(error instanceof Problem && error.isPassing)) throw error;
    this.state.tellError(what, error);
    this.state.enter("backoff");
    const asked = error instanceof Problem ? (error.retryAfter ?? 0) : 0;
    await this.#sleep(Math.max(asked * 1000, this.#backoff.nextMs()));
  }

  #sleep(ms: number): Promise<void> {
    const ends = now() + ms;
    return this.state.waitUntil(() => this.state.isStopping, () => ends);
  }
}
