/** State: what the loops of one worker share. After every change, each loop that waits looks at the whole state again. */
import { now } from "./clock.js";
import type { Event, Listener } from "./events.js";
import type { Held, Lease } from "./lease.js";
import type { Session } from "./session.js";

/** `timeoutMs` is for requests that do not wait for work. */
export interface Pace {
  waitMs: number;
  timeoutMs: number;
  retryEveryMs: number;
  backoffMs: [number, number];
  graceMs: number;
}

const TIMER_MS_MAX = 2 ** 31 - 1;

export class State {
  session: Session | null = null;
  order = "work";
  phase = "startup";
  running = 0;
  isStopping = false;
  graceEnds = Infinity;
  error: unknown = null;
  readonly leases = new Map<number, Lease>();
  readonly #waiters = new Set<() => void>();
  readonly #closed = new AbortController();
  #call: AbortController | null = null;

  constructor(
    private readonly slots: number,
    readonly pace: Pace,
    readonly tell: Listener,
  ) {}

  get free(): number {
    return this.slots - this.running;
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** `until` is asked again after each change, because a deadline may move. */
  waitUntil(isSo: () => boolean, until: () => number = () => Infinity): Promise<void> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const look = () => {
        clearTimeout(timer);
        const left = until() - now();
        if (isSo() || left <= 0) {
          this.#waiters.delete(look);
          resolve();
        } else if (left !== Infinity) {
          timer = setTimeout(look, Math.min(left, TIMER_MS_MAX));
        }
      };
      this.#waiters.add(look);
      look();
    });
  }

  /** Stopping again may only shorten the grace. */
  stop(graceMs: number, error: unknown = null): void {
    this.isStopping = true;
    this.phase = "draining";
    this.graceEnds = Math.min(this.graceEnds, now() + graceMs);
    this.error ??= error;
    this.#changed();
  }

  enter(phase: string): void {
    if (!this.isStopping) this.phase = phase;
  }

  begin(session: Session): void {
    this.session = session;
    this.order = "work";
    this.#changed();
    this.tell({ name: "registered", detail: session.name });
  }

  /** The server does not know this session any more: everything it held is lost, and a new one is needed. */
  forget(session: Session): void {
    if (this.session !== session) return;
    this.session = null;
    this.abortCall();
    for (const lease of [...this.leases.values()]) this.lose(lease, "unknown_worker");
    this.#changed();
  }

  obey(session: Session, order: string): void {
    if (this.session !== session || order === this.order || !["work", "quiet", "stop"].includes(order)) return;
    this.order = order;
    this.#changed();
    this.tell({ name: "ordered", code: order });
    if (order === "stop") this.stop(this.pace.graceMs);
  }

  hold(lease: Lease): void {
    this.leases.set(lease.number, lease);
  }

  lose(lease: Lease, loss: string): void {
    const isNews = lease.lose(loss);
    this.#drop(lease);
    if (isNews) this.tell({ name: "lost", lease: lease.number, code: loss });
  }

  letGo(held: Held): void {
    held.lease.letGo(held);
    if (held.lease.isOver) this.#drop(held.lease);
  }

  startJob(): void {
    this.running += 1;
  }

  endJob(): void {
    this.running -= 1;
    this.#changed();
  }

  /** The call that `abortCall` ends; there is one claim or registration at a time. */
  startCall(): AbortSignal {
    this.#call = new AbortController();
    return this.#call.signal;
  }

  abortCall(): void {
    this.#call?.abort();
  }

  /** A failure that is not the end: told once, where it is handled. */
  tellError(what: string, error: unknown, about: Partial<Event> = {}): void {
    this.tell({ name: "error", ...about, detail: `${what}: ${error instanceof Error ? error.message : String(error)}` });
  }

  close(): void {
    for (const lease of [...this.leases.values()]) this.lose(lease, "goodbye");
    this.phase = "stopped";
    this.#closed.abort();
    this.tell({ name: "stopped" });
  }

  #drop(lease: Lease): void {
    this.leases.delete(lease.number);
    this.#changed();
  }

  #changed(): void {
    for (const look of [...this.#waiters]) look();
  }
}
