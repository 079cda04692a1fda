// pg-boss.
import { PgBoss } from "pg-boss";

const QUEUE = "noop";

// `batchSize`, `localConcurrency`, `burstWhenBatchFull`, `pollingIntervalSeconds` (0.5 is the least) and the queue's
// `notify`: https://pgboss.io/api/workers and dist/types.d.ts. A batch larger than one needs a handler of arrays, and
// without `burstWhenBatchFull` a worker rests for the polling interval after each batch. `notify` is on for
// `latency` only, so that enqueues do not pay for it.
//
// Three turns at load 3 to 5 on two cores, 100,000 jobs in `drain`: 4 workers 34,064, 23,315, 33,517 jobs/s, 2 workers
// 26,806, 28,243, 25,164, 1 worker 20,150, 19,522, 18,996; with 20,000 jobs 4 workers won 3 of 3 turns as well. With 2
// workers batches of 500 25,926, 26,485, 23,551, of 2,000 24,319, 24,321, 27,546; 1 worker with 5,000 22,471, 19,705, 19,713.
// A table of the queue's own (`partition`) was behind in the one turn it had (8,855 : 12,615).
//
// drain_10: one batch of ten 1,295, 1,392, 1,142; two of five 942, 1,061, 1,201; five of two 916, 1,075, 1,059.
// drain_mixed: batches of 10 and 20 did 1,402 and 1,944 jobs/s, of 2 and 4 477 and 465, one turn each at load 17: small
// batches lose, the rest is not decided. A batch ends with its slowest job.
export const settings = (measure) =>
  ({
    drain: { batchSize: 1000, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, max: 5 },
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
