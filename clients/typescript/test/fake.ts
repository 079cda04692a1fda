/**
 * A server that plays the protocol from a script and records what it hears.
 *
 * Without a script it behaves well: it hands out what was offered, renews, and stores every report.
 * `script("complete", { status: 503 }, DROP)` plays these first, in that order.
 */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An upper bound, in milliseconds, for waits that end long before. */
export const PATIENCE_MS = 5000;

export interface Request {
  verb: string;
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: any;
  /** The client's: equal ports are one connection. */
  port: number;
  /** By the monotonic clock, which the tests share with the worker. */
  heardAt: number;
}

export interface Reply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Closes the connection without an answer. */
export const DROP = Symbol("drop");
/** Answers nothing until the server ends. */
export const HANG = Symbol("hang");
/** What is done where no script says otherwise. */
export const BEHAVE = Symbol("behave");
export type Step = Reply | typeof DROP | typeof HANG | typeof BEHAVE;

export function problem(status: number, code: string, members: object = {}): Reply {
  const about = { type: `/v1/problems/${code}`, title: `the title of ${code}`, detail: `the detail of ${code}` };
  const headers = { "Content-Type": "application/problem+json" };
  return { status, body: { ...about, status, code, ...members }, headers };
}

export function job(id: string, kind = "work", payload: unknown = null, gate: string | null = null): object {
  return { id, kind, payload, gate, attempt: 1, max_attempts: 5, losses: 0, later: true };
}

export class Fake {
  readonly requests: Request[] = [];
  order = "work";
  /** Of a claim; a short one makes the first renewal come soon. */
  ttlMs = 60_000;
  waitedMs = 0;
  renewedTtlMs = 60_000;
  cancel: string[] = [];
  url = "";
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #scripts = new Map<string, Step[]>();
  readonly #offers: object[][] = [];
  readonly #waiters = new Set<() => void>();
  #isClosed = false;
  #leases = 100;
  #workers = 0;

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.changed();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  script(verb: string, ...steps: Step[]): void {
    this.#scripts.set(verb, [...(this.#scripts.get(verb) ?? []), ...steps]);
  }

  forever(verb: string, step: Step): void {
    this.script(verb, ...Array<Step>(1000).fill(step));
  }

  offer(...jobs: object[]): void {
    this.#offers.push(jobs);
    this.changed();
  }

  giveOrder(order: string): void {
    this.order = order;
    this.changed();
  }

  /** As after a restore of the server's store: all tokens given out so far are unknown. */
  forgetWorkers(): void {
    this.#workers += 1;
    this.changed();
  }

  heard(...verbs: string[]): Request[] {
    return this.requests.filter((request) => verbs.includes(request.verb));
  }

  async waitFor(verb: string, count = 1): Promise<Request[]> {
    await this.until(
      () => this.heard(verb).length >= count,
      () => `heard ${this.requests.map((request) => request.verb)}, not ${count} times ${verb}`,
    );
    return this.heard(verb);
  }

  /** Resolves when `isSo`; rejects with `complaint` when patience is over. Looks again after each `changed`. */
  until(isSo: () => boolean, complaint: () => string, patienceMs = PATIENCE_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!isSo()) return;
        end();
        resolve();
      };
      const end = () => {
        clearTimeout(timer);
        this.#waiters.delete(look);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(complaint()));
      }, patienceMs);
      this.#waiters.add(look);
      look();
    });
  }

  changed(): void {
    for (const look of [...this.#waiters]) look();
  }

  async #serve(http: IncomingMessage, response: ServerResponse): Promise<void> {
    const heardAt = performance.now();
    let text = "";
    for await (const chunk of http) text += chunk;
    const { method = "", url: path = "", headers } = http;
    const verb = verbOf(method, path);
    const body = text ? JSON.parse(text) : null;
    const request = { verb, method, path, headers, body, port: http.socket.remotePort ?? 0, heardAt };
    const step = this.#scripts.get(verb)?.shift() ?? BEHAVE;
    this.requests.push(request);
    this.changed();
    if (step === HANG) return;
    if (step === DROP) {
      http.socket.destroy();
      return;
    }
    const reply = step === BEHAVE ? await this.#behave(request) : step;
    response.writeHead(reply.status, reply.headers ?? {});
    response.end(reply.body === undefined ? undefined : JSON.stringify(reply.body));
  }

  async #behave(request: Request): Promise<Reply> {
    const { verb } = request;
    if (verb === "register") {
      const worker = (this.#workers += 1);
      return { status: 201, body: { worker, name: "w", token: `tnw_${worker}`, beat_every_ms: 20, later: true } };
    }
    if (["claim", "renew", "beat"].includes(verb) && !this.#knows(request)) return problem(401, "unknown_worker");
    if (verb === "claim") return this.#claim(request);
    if (verb === "renew") return { status: 200, body: { lease: 1, ttl_ms: this.renewedTtlMs, cancel: this.cancel, order: this.order } };
    if (verb === "beat") return { status: 200, body: { order: this.order } };
    if (verb === "goodbye") return { status: 204 };
    if (verb === "acquire") return { status: 200, body: { wait_ms: 0, snooze_ms: null } };
    return { status: 200, body: { job: request.path.split("/")[5], state: `after ${verb}`, repeated: false } };
  }

  async #claim(request: Request): Promise<Reply> {
    const isReady = () => this.#offers.length > 0 || this.#isClosed || this.order !== "work" || !this.#knows(request);
    await this.until(isReady, () => "", request.body.wait_ms).catch(() => undefined);
    if (!this.#knows(request)) return problem(401, "unknown_worker");
    const jobs = this.order === "work" ? this.#offers.shift() : undefined;
    const lease = jobs && { lease: (this.#leases += 1), queue: "mail", ttl_ms: this.ttlMs, jobs };
    return { status: 200, body: { lease: lease ?? null, waited_ms: this.waitedMs, order: this.order } };
  }

  #knows(request: Request): boolean {
    return request.headers["tenure-worker"] === `tnw_${this.#workers}`;
  }
}

function verbOf(method: string, path: string): string {
  if (path === "/v1/workers") return "register";
  if (path.startsWith("/v1/workers/")) return method === "PUT" ? "beat" : "goodbye";
  if (path === "/v1/leases") return "claim";
  if (path.startsWith("/v1/leases/")) return path.slice(path.lastIndexOf("/") + 1);
  return "produce";
}
