/** Client: what a producer says to the server, and how a worker registers. */
import { hostname } from "node:os";

import { Session } from "./session.js";
import { Transport } from "./transport.js";

/** At most one job per key. It stays taken by `policy`, or for `window` seconds; `while_active` if neither is said. */
export type Unique =
  | { key: string; policy?: "while_active" | "unless_failed" | "forever"; window?: never }
  | { key: string; policy?: never; window: number };

/** A job to enqueue. What is left out is decided by the server. */
export interface NewJob {
  kind: string;
  payload?: unknown;
  queue?: string;
  priority?: 0 | 1 | 2 | 3;
  delayMs?: number;
  runAt?: Date | string;
  tenant?: string;
  gate?: string;
  maxAttempts?: number;
  backoff?: string;
  unique?: Unique | string;
  trace?: string;
}

/** `created` is false when an equal key already had this job. `state` is null when that one was pruned since. */
export interface Enqueued {
  id: string;
  created: boolean;
  state: string | null;
}

/** A job as the server tells it, with its attempts; members are named as on the wire. */
export interface JobView {
  id: string;
  state: string;
  kind: string;
  [member: string]: unknown;
}

export interface ClientOptions {
  /** Seconds, for every request but a claim that waits for work. */
  timeout?: number;
}

/** Speaks to one server with one key. */
export class Client {
  readonly #transport: Transport;

  constructor(url: string, key: string, options: ClientOptions = {}) {
    this.#transport = new Transport(url, key, (options.timeout ?? 10) * 1000);
  }

  /** Store a job. After `Unreachable`, say it again with the same `idempotencyKey`: it is one job. */
  async enqueue(
    kind: string,
    payload?: unknown,
    options: Omit<NewJob, "kind" | "payload"> & { idempotencyKey?: string } = {},
  ): Promise<Enqueued> {
    const { idempotencyKey, ...rest } = options;
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey };
    return enqueued(await this.#transport.call("POST", "/v1/jobs", wire({ kind, payload, ...rest }), { headers }));
  }

  /** Store many jobs in one request; the answers come in the same order. */
  async enqueueMany(jobs: Iterable<NewJob>): Promise<Enqueued[]> {
    const answer = await this.#transport.call("POST", "/v1/jobs/batch", { jobs: [...jobs].map(wire) });
    return answer.jobs.map(enqueued);
  }

  async show(job: string): Promise<JobView> {
    return this.#transport.call("GET", `/v1/jobs/${encodeURIComponent(job)}`);
  }

  /**
   * Ask a job to end. With `force` a running one is taken from its worker at once.
   * Answers `now`, `requested` (its worker is asked) or `before`.
   */
  async cancel(job: string, options: { force?: boolean; reason?: string } = {}): Promise<string> {
    return (await this.#transport.call("POST", `/v1/jobs/${encodeURIComponent(job)}/cancel`, options)).canceled;
  }

  /** Put a job that failed, died or was canceled back into its queue. */
  async requeue(job: string, options: { reason?: string } = {}): Promise<void> {
    await this.#transport.call("POST", `/v1/jobs/${encodeURIComponent(job)}/requeue`, options);
  }

  /** Register this start of the process. `Worker` does this by itself. */
  async register(
    queues: readonly string[],
    slots: number,
    options: { name?: string; version?: string; abort?: AbortSignal } = {},
  ): Promise<Session> {
    const { abort, ...names } = options;
    const body = { ...names, host: hostname(), pid: process.pid, queues: queues.map((queue) => ({ queue, slots })) };
    const answer = await this.#transport.call("POST", "/v1/workers", body, abort ? { abort } : {});
    return new Session(this.#transport, answer.worker, answer.name, answer.token, answer.beat_every_ms);
  }
}

function wire(job: NewJob): Record<string, unknown> {
  const { delayMs, runAt, maxAttempts, unique, ...same } = job;
  const { key, policy, window }: Partial<Unique> = typeof unique === "string" ? { key: unique } : (unique ?? {});
  return {
    ...same,
    delay_ms: delayMs,
    run_at: runAt instanceof Date ? runAt.toISOString() : runAt,
    max_attempts: maxAttempts,
    unique: key,
    unique_policy: window === undefined ? policy : `window:${Math.round(window * 1000)}ms`,
  };
}

function enqueued(line: { id: string; answer: "created" | "found"; state: string | null }): Enqueued {
  return { id: line.id, created: line.answer === "created", state: line.state };
}
