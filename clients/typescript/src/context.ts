/** Context: what a handler may ask and say while it runs. */
import { Canceled } from "./outcomes.js";

export type Why = "cancel" | "lost" | "stop";

export class Context {
  readonly #ending = new AbortController();
  readonly #acquire: (ctx: Context, tokens: number) => Promise<void>;
  readonly #usage: Record<string, number> = {};
  readonly #gate: Record<string, unknown> = {};
  #why: Why | null = null;

  /** `fence` is the lease number: it grows with every attempt, so a receiver can refuse an older one. */
  constructor(
    readonly fence: number,
    acquire: (ctx: Context, tokens: number) => Promise<void>,
  ) {
    this.#acquire = acquire;
  }

  /** Aborted, with a `Canceled`, when the work should end. Pass it to `fetch` and the like. */
  get canceled(): AbortSignal {
    return this.#ending.signal;
  }

  get isCanceled(): boolean {
    return this.#ending.signal.aborted;
  }

  /** `cancel`: somebody asked. `lost`: the lease is gone, and what is returned is dropped. `stop`: the worker ends. */
  get why(): Why | null {
    return this.#why;
  }

  /** Adds to what is reported when the job completes. */
  usage(name: string, amount: number): void {
    this.#usage[name] = (this.#usage[name] ?? 0) + amount;
  }

  /**
   * Waits until the job's gate, if it has one, lets `tokens` more through.
   * Throws `Snooze` when the gate is closed and `Canceled` when the work should end: let both pass.
   */
  acquire(tokens = 1): Promise<void> {
    return this.#acquire(this, tokens);
  }

  /** The resource asked for silence (`Retry-After`): said with the report, whatever the outcome. */
  holdGate(seconds: number): void {
    this.#gate["hold_ms"] = Math.round(seconds * 1000);
  }

  /** Whether the resource did well, where the outcome tells something else. */
  gateHealth(health: "healthy" | "unhealthy"): void {
    this.#gate["health"] = health;
  }

  /** @internal For the worker. The first reason stays. */
  askToStop(why: Why): void {
    this.#why ??= why;
    this.#ending.abort(new Canceled(why));
  }

  /** @internal For the worker: members of the report. */
  said(): { usage: Record<string, number>; gate: Record<string, unknown> } {
    return { usage: this.#usage, gate: this.#gate };
  }
}
