// pg-boss.
import { PgBoss } from "pg-boss";

const QUEUE = "noop";

// `batchSize`, `localConcurrency`, `burstWhenBatchFull`, `pollingIntervalSeconds` (0.5 is the least) and the queue's
// `notify`: https://pgboss.io/api/workers and dist/types.d.ts. A batch larger than one needs a handler of arrays, and
// without `burstWhenBatchFull` a worker rests for the polling interval after each batch. `notify` is on where it is
// measured only, for it slows the enqueue.
//
// drain_mixed: batches of 10 and 20 did 1,402 and 1,944 jobs/s, batches of 2 and 4 with 100 and 50 workers 477 and 465.
// A batch ends with its slowest job, so fewer workers with larger batches lose as well in theory.
//
// Not decided: candidates.json was run through once, one sample each, on a busy machine. These settings for `drain` gave
// 14,213, 12,615 and 3,314 jobs/s within two hours, so the 3,314 to 8,023 of that pass rank nothing, though every
// candidate was above the default there. A table of the queue's own (`partition`) gave 8,855 against 12,615, once.
// `./x peers --tune --rounds 5` on a quiet machine will decide.
export const settings = (measure) =>
  ({
    drain: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, max: 5 },
    drain_10: { batchSize: 10, localConcurrency: 1, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, max: 11 },
    drain_mixed: { batchSize: 10, localConcurrency: 20, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, max: 20 },
    latency: { batchSize: 1, localConcurrency: 1, pollingIntervalSeconds: 0.5, notify: true, max: 10 },
    enqueue_bulk: { batch: 5000, producers: 2 },
    enqueue_single: {},
  })[measure];

export const unfinished = `select exists (select from pgboss.job where state < 'completed' and priority = 0 and start_after <= now()) as unfinished`;

export const finish = `update pgboss.job set state = 'completed', started_on = now(), completed_on = now()`;

export async function setup(url, settings) {
  const boss = await start(url);
  await boss.createQueue(QUEUE, { partition: settings.partition ?? false, notify: settings.notify ?? false });
  await boss.stop();
}

export async function bulk(url, { count, scheduled, backlog, payload, settings, inBatches }) {
  const boss = await start(url);
  const more = { ...(scheduled && { startAfter: new Date(Date.now() + 365 * 86_400_000) }), ...(backlog && { priority: -10 }) };
  await inBatches(count, settings, (numbers) =>
    boss.insert(QUEUE, numbers.map((n) => ({ data: payload(n, backlog && { backlog }), ...more }))),
  );
  await boss.stop();
}

export async function producer(url, producers) {
  const boss = await start(url, { max: producers });
  return {
    add: (payload) => boss.send(QUEUE, payload),
    close: () => boss.stop(),
  };
}

export async function work(url, { max, notify = false, partition, ...settings }, handler) {
  const boss = await start(url, { max, useListenNotify: notify });
  await boss.work(QUEUE, settings, (jobs) => Promise.all(jobs.map((job) => handler(job.data))));
  return { stop: () => boss.stop({ graceful: false }) };
}

async function start(url, options = {}) {
  const boss = new PgBoss({ connectionString: url, ...options });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  return boss;
}
