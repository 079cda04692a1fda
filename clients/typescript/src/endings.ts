/** Ending: what is to be reported about a job, made from how its handler ended. */
import type { Context, Why } from "./context.js";
import type { Job } from "./job.js";
import { Canceled, Fail, Snooze } from "./outcomes.js";
import type { Verb } from "./session.js";

export type Handler = (job: Job, ctx: Context) => unknown;

export interface Ending {
  verb: Verb;
  body: Record<string, unknown>;
}

export const GIVEN_BACK: Ending = { verb: "release", body: { delay_ms: 0 } };

export async function runHandler(handler: Handler, job: Job, ctx: Context): Promise<Ending> {
  let ending: Ending;
  try {
    ending = { verb: "complete", body: { result: await handler(job, ctx) } };
  } catch (error) {
    ending = endingOf(error, ctx.why);
  }
  const { usage, gate } = ctx.said();
  if (ending.verb === "complete" && Object.keys(usage).length > 0) ending.body["usage"] = usage;
  if (Object.keys(gate).length > 0) ending.body["gate"] = gate;
  return ending;
}

/** For a report that cannot be sent or stored. Its own words are known to be harmless. */
export function unstorable(why: string): Ending {
  const message = `the report could not be stored: ${why}`;
  return { verb: "fail", body: { class: "permanent", message, code: "unstorable_report" } };
}

function endingOf(error: unknown, why: Why | null): Ending {
  if (error instanceof Fail) {
    const { code, details, retryIn } = error.options;
    const retry_in_ms = retryIn === undefined ? undefined : Math.round(retryIn * 1000);
    return { verb: "fail", body: { class: error.failure, message: error.message, code, details, retry_in_ms } };
  }
  if (error instanceof Snooze) return { verb: "snooze", body: { delay_ms: Math.round(error.seconds * 1000) } };
  // A handler that was told to stop may leave by any error. If the worker ends, the job is not to blame for it.
  if (why === "stop") return { verb: "release", body: { delay_ms: 0 } };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Canceled || why === "cancel") return { verb: "cancel", body: message ? { message } : {} };
  const code = error instanceof Error ? error.constructor.name : typeof error;
  return { verb: "fail", body: { class: "transient", message: message || code, code } };
}
