/** Session: the raw verbs of a worker that has registered. `Worker` adds the retries, deadlines and timers. */
import { Unreachable } from "./errors.js";
import { type Job, jobFromWire } from "./job.js";
import type { CallOptions, Transport } from "./transport.js";

/** `lease` is null when the wait was over and there was nothing. Its `waitedMs` are not its own time. */
export interface Claimed {
  lease: { number: number; ttlMs: number; waitedMs: number; jobs: Job[] } | null;
  order: string;
}

export interface Renewed {
  ttlMs: number;
  cancel: string[];
  order: string;
}

/** Where the job stands now. `repeated`: this very report had been stored before. */
export interface Reported {
  state: string;
  repeated: boolean;
}

/** How long to wait before the tokens are good, or to snooze the job for when its gate is closed. */
export type Acquired = { waitMs: number } | { snoozeMs: number };

export type Verb = "complete" | "fail" | "snooze" | "release" | "cancel";

export class Session {
  constructor(
    private readonly transport: Transport,
    readonly worker: number,
    readonly name: string,
    private readonly token: string,
    readonly beatEveryMs: number,
  ) {}

  /** Ask for work. `holding`, said after a claim whose answer was lost, gives every other lease back. */
  async claim(
    queues: readonly string[],
    limit: number,
    options: { waitMs: number; holding?: number[] | undefined; timeoutMs: number; abort?: AbortSignal },
  ): Promise<Claimed> {
    const { waitMs, holding, timeoutMs, abort } = options;
    const body = { queues, limit, wait_ms: waitMs, holding };
    const calling: CallOptions = { timeoutMs: waitMs + timeoutMs, ...(abort && { abort }) };
    return this.#call("POST", "/v1/leases", body, calling, ({ lease, waited_ms, order }) => ({
      lease: lease === null ? null : {
        number: number(lease.lease),
        ttlMs: number(lease.ttl_ms),
        waitedMs: number(waited_ms),
        jobs: lease.jobs.map((job: unknown) => jobFromWire(lease.queue, job)),
      },
      order,
    }));
  }

  async renew(lease: number, timeoutMs: number): Promise<Renewed> {
    return this.#call("POST", `/v1/leases/${lease}/renew`, {}, { timeoutMs }, (answer) => ({
      ttlMs: number(answer.ttl_ms),
      cancel: answer.cancel ?? [],
      order: answer.order,
    }));
  }

  /** Say how a job ended. */
  async report(lease: number, job: string, verb: Verb, body: object, timeoutMs: number): Promise<Reported> {
    return this.#call("POST", jobPath(lease, job, verb), body, { timeoutMs }, (answer) => ({
      state: answer.state,
      repeated: answer.repeated === true,
    }));
  }

  /** Reserve tokens of the job's gate, if it is open. */
  async acquire(lease: number, job: string, tokens: number, timeoutMs: number): Promise<Acquired> {
    return this.#call("POST", jobPath(lease, job, "acquire"), { tokens }, { timeoutMs }, ({ wait_ms, snooze_ms }) =>
      wait_ms === null ? { snoozeMs: number(snooze_ms) } : { waitMs: number(wait_ms) },
    );
  }

  /** Say how the worker does; answers the order. */
  async beat(state: string, running: number, timeoutMs: number): Promise<string> {
    const body = { state, running };
    return this.#call("PUT", `/v1/workers/${this.worker}`, body, { timeoutMs }, (answer) => answer.order);
  }

  /** The end of this worker: what it still holds is given back, uncharged. */
  async goodbye(timeoutMs: number): Promise<void> {
    return this.#call("DELETE", `/v1/workers/${this.worker}`, undefined, { timeoutMs }, () => undefined);
  }

  async #call<T>(method: string, path: string, body: unknown, options: CallOptions, read: (answer: any) => T): Promise<T> {
    const answer = await this.transport.call(method, path, body, { ...options, headers: { "Tenure-Worker": this.token } });
    try {
      return read(answer);
    } catch (error) {
      // An answer without its members is as good as none: something between us and the server made it.
      throw new Unreachable(`${method} ${path}: the answer cannot be read`, { cause: error });
    }
  }
}

function jobPath(lease: number, job: string, verb: string): string {
  return `/v1/leases/${lease}/jobs/${encodeURIComponent(job)}/${verb}`;
}

function number(value: unknown): number {
  if (typeof value !== "number") throw new TypeError(`not a number: ${value}`);
  return value;
}
