/** Beats: how the worker does, for the eyes of people. Leases do not depend on them. */
import { sleep } from "./clock.js";
import { Problem } from "./errors.js";
import type { State } from "./state.js";

export async function beatUntilClosed(state: State): Promise<void> {
  for (;;) {
    const session = state.session;
    if (!(await sleep(session?.beatEveryMs ?? state.pace.retryEveryMs, state.closed))) return;
    if (session === null || session !== state.session) continue;
    try {
      state.obey(session, await session.beat(state.phase, state.running, state.pace.timeoutMs));
    } catch (error) {
      // A beat that got lost is not missed by anybody.
      if (error instanceof Problem && error.code === "unknown_worker") state.forget(session);
    }
  }
}
