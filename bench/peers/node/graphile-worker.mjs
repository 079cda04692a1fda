// graphile-worker for Node.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";

const KIND = "noop";
const silent = new Logger(() => () => {});

// `localQueue`, `completeJobBatchDelay` and these very numbers for `drain` are the vendor's own for its published rates:
// https://worker.graphile.org/docs/performance. The same page and dist/index.d.ts say what each costs.
//
// Three turns at load 3 to 5 on two cores, 100,000 jobs in `drain`: these settings 37,350, 31,946, 26,662 jobs/s; a queue of
// 1,000 38,231, 31,652, 31,358; of 5,000 37,230, 36,480, 14,007; of 1,000 with 100 jobs 31,283, 34,476, 35,150; of 1,000
// with batches of 5 ms 34,473, 36,037, 36,832; 10 jobs 28,843, 28,260, 27,190. All but the last overlap: the vendor's stay.
// With 20,000 jobs a queue of 5,000 seemed to win by far, because a quarter of them was claimed before the clock started.
//
// drain_10 has no local queue: it claims jobs ahead of the ten that run. Ending jobs in batches claims nothing ahead, and
// won 7 of 7 turns against ending them one by one (last 2,020 : 1,394, 1,887 : 1,237, 1,557 : 1,122); 0 or 1 ms overlap.
//
// enqueue_bulk: two producers 10,764, one 4,800 jobs/s, one turn each. drain_mixed: one turn each at load 17, not decided.
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
