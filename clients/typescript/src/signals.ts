/** runUntilSignal: the whole life of a worker process. */
import type { Worker } from "./worker.js";

/**
 * Run until SIGTERM or SIGINT, then drain for `grace` seconds. A second signal ends the grace.
 * Throws what `Worker.run` throws. A handler that did not end may keep the event loop alive: call `process.exit` after it.
 */
export async function runUntilSignal(worker: Worker, grace?: number): Promise<void> {
  let isFirst = true;
  const hear = () => {
    worker.stop(isFirst ? grace : 0);
    isFirst = false;
  };
  process.on("SIGTERM", hear).on("SIGINT", hear);
  try {
    await worker.run();
  } finally {
    process.off("SIGTERM", hear).off("SIGINT", hear);
  }
}
