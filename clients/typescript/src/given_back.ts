/** GivenBack: how long a job of a kind without a handler waits for other workers, the same rule as Tenure's own worker. */
import type { Ending } from "./endings.js";

const FIRST_MS = 15_000;
const CAP_MS = 300_000;
/** So many times in a row a job waits for the first time only: a worker that handles the kind usually takes it then. */
const QUICK = 4;
/** Jobs that are counted: the job that was given back longest ago makes room for a new one. */
const JOBS_MAX = 10_000;

/** Four times 15 s, then twice as long each time, up to 5 minutes. */
export function unknownKindDelayMs(times: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(times - QUICK, 0), CAP_MS);
}

/** Counts how often this worker gave back each job, the latest jobs only. */
export class GivenBack {
  readonly #times = new Map<string, number>();

  ending(jobId: string): Ending {
    const times = (this.#times.get(jobId) ?? 0) + 1;
    this.#times.delete(jobId);
    const [oldest] = this.#times.keys();
    if (this.#times.size >= JOBS_MAX && oldest !== undefined) this.#times.delete(oldest);
    this.#times.set(jobId, times);
    return { verb: "release", body: { delay_ms: unknownKindDelayMs(times) } };
  }
}
