/** Reports: say how a job ended, again and again until there is an answer or the lease is lost. */
import { sleep } from "./clock.js";
import type { Context } from "./context.js";
import { type Ending, unstorable } from "./endings.js";
import { Problem, Unreachable } from "./errors.js";
import type { Job } from "./job.js";
import type { Held, Lease } from "./lease.js";
import { Canceled, Snooze } from "./outcomes.js";
import type { Acquired } from "./session.js";
import type { State } from "./state.js";

const BODY_BYTES_MAX = 2 * 1024 * 1024;

const PAST = { complete: "completed", fail: "failed", snooze: "snoozed", release: "released", cancel: "canceled" };

/** Returns when the server has stored it, or when it was dropped. */
export async function report(state: State, held: Held, wanted: Ending): Promise<void> {
  const { lease, job, about } = held;
  let ending = sendable(wanted);
  let isLastResort = false;
  for (;;) {
    if (lease.isLost) {
      state.lose(lease, "deadline");
      return state.tell({ name: "refused", ...about, code: "lease_lost", detail: lease.loss ?? "deadline" });
    }
    let pauseMs: number;
    try {
      const timeoutMs = Math.min(state.pace.timeoutMs, Math.max(1, lease.leftMs));
      const answer = await lease.session.report(lease.number, job.id, ending.verb, ending.body, timeoutMs);
      return state.tell({ name: PAST[ending.verb], ...about, detail: answer.state });
    } catch (error) {
      if (error instanceof Problem && error.code === "unknown_worker") state.forget(lease.session);
      if (error instanceof Unreachable || (error instanceof Problem && error.isPassing)) {
        pauseMs = pauseAfterMs(state, error);
      } else if (!(error instanceof Problem)) {
        throw error;
      } else if ([401, 403, 409].includes(error.status) || isLastResort) {
        return state.tell({ name: "refused", ...about, code: error.code, detail: error.detail });
      } else {
        state.tellError(`${ending.verb} is not stored`, error, about);
        ending = unstorable(error.field ?? error.code);
        isLastResort = true;
        continue;
      }
    }
    // Even where the server asks for more patience: there must be another try before the deadline.
    await sleep(Math.min(pauseMs, Math.max(state.pace.retryEveryMs, lease.leftMs / 2)), lease.lost);
  }
}

/** Reserve tokens and wait until they are good. A job without a gate waits for nothing. */
export async function acquire(state: State, lease: Lease, job: Job, ctx: Context, tokens: number): Promise<void> {
  while (!ctx.isCanceled && !lease.isLost) {
    if (job.gate === null) return;
    let acquired: Acquired | undefined;
    let pauseMs = 0;
    try {
      acquired = await lease.session.acquire(lease.number, job.id, tokens, state.pace.timeoutMs);
    } catch (error) {
      if (error instanceof Problem) {
        if (error.code === "unknown_worker") state.forget(lease.session);
        if (error.code === "unknown_worker" || error.code === "lease_lost") break;
        if (!error.isPassing) throw error;
      }
      pauseMs = pauseAfterMs(state, error);
    }
    if (acquired && "snoozeMs" in acquired) throw new Snooze(acquired.snoozeMs / 1000);
    if ((await sleep(acquired?.waitMs ?? pauseMs, ctx.canceled)) && acquired) return;
  }
  throw new Canceled("while waiting for the gate");
}

/** One to two times `retryEveryMs`, or longer if the server asked for that. */
export function pauseAfterMs(state: State, error: unknown): number {
  const asked = error instanceof Problem ? (error.retryAfter ?? 0) : 0;
  return Math.max(asked * 1000, state.pace.retryEveryMs * (1 + Math.random()));
}

function sendable(ending: Ending): Ending {
  // Found out here, because a body that the server will not read can look like a broken connection.
  // And a copy, because a repeated report must be the same even if the handler still writes to its result.
  let text: string;
  try {
    text = JSON.stringify(ending.body);
  } catch (error) {
    // Details only explain the failure and must not change its class.
    if (ending.body["details"] !== undefined) return sendable({ verb: ending.verb, body: { ...ending.body, details: undefined } });
    return unstorable(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const bytes = Buffer.byteLength(text);
  return bytes <= BODY_BYTES_MAX ? { verb: ending.verb, body: JSON.parse(text) } : unstorable(`${bytes} bytes`);
}
