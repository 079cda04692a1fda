/**
 * Renewals: a loop per lease, so that no other lease's slow answer can hold one up.
 *
 * A handler that blocks the event loop can: then renewals starve, and the deadline, which is asked for by the clock
 * before anything is reported, fences the job as if the network had failed.
 */
import { now, sleep } from "./clock.js";
import { Problem } from "./errors.js";
import type { Lease } from "./lease.js";
import { pauseAfterMs } from "./reports.js";
import type { State } from "./state.js";

export async function renewUntilOver(state: State, lease: Lease): Promise<void> {
  let due = lease.deadline - (lease.ttlMs * 2) / 3;
  while ((await sleep(Math.max(0, due - now()), lease.over)) && !lease.isLost) {
    const sent = now();
    try {
      // An answer later than the next renewal's time helps nobody, and a hanging one must leave time to try again.
      const renewed = await lease.session.renew(lease.number, Math.min(state.pace.timeoutMs, lease.ttlMs / 3));
      lease.extend(sent, renewed.ttlMs);
      lease.askToCancel(renewed.cancel);
      state.obey(lease.session, renewed.order);
      due = sent + renewed.ttlMs / 3;
    } catch (error) {
      if (error instanceof Problem && error.code === "unknown_worker") state.forget(lease.session);
      else if (error instanceof Problem && error.code === "lease_lost") state.lose(lease, "lease_lost");
      // Any other answer is no proof of loss: the deadline decides. It does not wait for a `Retry-After` either.
      due = now() + pauseAfterMs(state, null);
    }
  }
}

/** A timer apart from the renewals, because a renewal may hang in the network past its lease's end. */
export async function watchDeadline(state: State, lease: Lease): Promise<void> {
  while (!lease.isOver) {
    if (lease.isLost) state.lose(lease, "deadline");
    else await sleep(lease.leftMs, lease.over);
  }
}
