// graphile-worker for Node.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";

const KIND = "noop";
const silent = new Logger(() => () => {});

// `localQueue`, `completeJobBatchDelay` and these very numbers for `drain` are the vendor's own for its published rates:
// https://worker.graphile.org/docs/performance. The same page and dist/index.d.ts say what each costs.
//
// drain_10 has no local queue: it claims jobs ahead of the ten that run. Ending jobs in batches claims nothing ahead; it
// won in 4 of 4 turns against ending them one by one (1,847 : 1,253, 1,199 : 821, 2,242 : 1,615, 529 : 320 jobs/s).
// enqueue_bulk: two producers 10,764, one 4,800 jobs/s, one turn each.
//
// Not decided: candidates.json was run through once, one sample each, while the machine was busy (load 11 to 19 on two
// cores, the same settings differing by a factor of three within the hour, and by a fifth from turn to turn). For `drain` that gave 8,638 to 10,594 jobs/s
// for queues of 500 to 5,000 and 24 to 100 jobs, which says nothing. `./x peers --tune --rounds 5` on a quiet machine will.
export const settings = (measure) =>
  ({
    drain: { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 25 },
    drain_10: { concurrentJobs: 10, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 11 },
    drain_mixed: { concurrentJobs: 200, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 25 },
    latency: { concurrentJobs: 10, maxPoolSize: 11 },
    enqueue_bulk: { batch: 5000, producers: 2 },
    enqueue_single: {},
  })[measure];

export const unfinished = `select exists (select from graphile_worker._private_jobs where priority = 0 and run_at <= now()) as unfinished`;

export async function setup(url) {
  await runMigrations({ connectionString: url, logger: silent });
}

export async function bulk(url, { count, scheduled, backlog, payload, settings, inBatches }) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent, maxPoolSize: settings.producers });
  const more = { ...(scheduled && { runAt: new Date(Date.now() + 365 * 86_400_000) }), ...(backlog && { priority: 10 }) };
  await inBatches(count, settings, (numbers) =>
    utils.addJobs(numbers.map((n) => ({ identifier: KIND, payload: payload(n, backlog && { backlog }), ...more }))),
  );
  await utils.release();
}

export async function producer(url, producers) {
  const pool = new pg.Pool({ connectionString: url, max: producers });
  pool.on("error", (error) => console.error(`graphile-worker: ${error.message}`));
  pool.on("connect", (client) => client.on("error", (error) => console.error(`graphile-worker: ${error.message}`)));
  const utils = await makeWorkerUtils({ pgPool: pool, logger: silent });
  return {
    add: (payload) => utils.addJob(KIND, payload),
    close: () => utils.release(),
  };
}

export async function work(url, settings, handler) {
  const runner = await run({
    preset: { worker: { connectionString: url, pollInterval: 1000, ...settings } },
    logger: silent,
    noHandleSignals: true,
    taskList: { [KIND]: handler },
    crontab: "",
  });
  return { stop: () => runner.stop() };
}
