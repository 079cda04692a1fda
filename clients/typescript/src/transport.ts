/** One HTTP call with a timeout, over the connections that `fetch` keeps alive. */
import { Problem, Unreachable } from "./errors.js";

export interface CallOptions {
  headers?: Record<string, string>;
  timeoutMs?: number;
  /** Ends the call early: it throws `Unreachable`. Used for a claim that waits. */
  abort?: AbortSignal;
}

export class Transport {
  readonly #prefix: string;
  readonly #key: string;
  readonly #timeoutMs: number;

  constructor(url: string, key: string, timeoutMs: number) {
    const parts = new URL(url);
    if (parts.protocol !== "http:" && parts.protocol !== "https:") throw new TypeError(`not an http or https address: ${url}`);
    this.#prefix = parts.origin + parts.pathname.replace(/\/+$/, "");
    this.#key = key;
    this.#timeoutMs = timeoutMs;
  }

  /** The decoded answer. Throws `Problem`, `Unreachable`, and TypeError when `body` is not JSON. */
  async call(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<any> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#key}`, Accept: "application/json", ...options.headers };
    const init: RequestInit = { method, headers, redirect: "manual" };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      headers["Content-Type"] = "application/json";
    }
    // A timer of our own, and not `AbortSignal.timeout` and `any`: nothing collects it early, and it ends with the call.
    // It also covers the body, and is far below the 300 s for which `fetch` itself would wait.
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(new Error("timeout")), options.timeoutMs ?? this.#timeoutMs);
    const abort = () => ending.abort(new Error("aborted"));
    if (options.abort?.aborted) abort();
    options.abort?.addEventListener("abort", abort);
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#prefix + path, { ...init, signal: ending.signal });
      text = await response.text();
    } catch (error) {
      throw new Unreachable(`${method} ${path}: ${reasonOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
      options.abort?.removeEventListener("abort", abort);
    }
    return decode(method, path, response, text);
  }
}

function decode(method: string, path: string, response: Response, text: string): unknown {
  const isGood = response.status >= 200 && response.status < 300;
  let answer: any = null;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch (error) {
    if (isGood) throw new Unreachable(`${method} ${path}: the answer is not JSON`, { cause: error });
  }
  if (isGood) return answer;
  throw new Problem(
    response.status,
    // What stands between us and the server answers without a code.
    String(answer?.code ?? `http_${response.status}`),
    String(answer?.detail ?? answer?.title ?? ""),
    answer?.field ?? null,
    seconds(response.headers.get("Retry-After")),
  );
}

function seconds(header: string | null): number | null {
  const value = Number(header ?? Number.NaN);
  return Number.isFinite(value) && header !== "" ? Math.max(0, value) : null; // An HTTP date is not of the protocol.
}

function reasonOf(error: unknown): string {
  // `fetch` says only "fetch failed"; what happened is in the cause.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}
