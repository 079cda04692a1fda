// graphile-worker for Node.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";

const KIND = "noop";
const silent = new Logger(() => () => {});

export const settings = (measure) =>
  ({
    drain: { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 25 },
    drain_10: { concurrentJobs: 10, maxPoolSize: 11 },
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
