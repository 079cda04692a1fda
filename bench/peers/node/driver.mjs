// Runs one measure of one peer: `node driver.mjs SYSTEM ACTION URL OPTIONS`, OPTIONS being JSON. bench/peers/run calls it.
//
// A peer is a module beside this one that exports
//   settings(measure)  its best documented settings for a measure, as one object that is printed with the numbers
//   setup(url, settings)   creates its tables
//   bulk(url, jobs)    enqueues `jobs.count` jobs by its bulk interface: due at once, `scheduled` for next year, or `backlog`
//   producer(url, producers)   { add(payload), close() }, one job per call, used by so many at a time
//   work(url, settings, handler)   starts a worker and answers { stop() }; `handler(payload)` may answer a promise
//   finish             SQL that makes history of all jobs, where the peer keeps history
//   unfinished         SQL: whether a job of normal priority that is due is not recorded as finished
import { readFileSync } from "node:fs";
import pg from "pg";

const [system, action, url, text] = process.argv.slice(2);
const options = JSON.parse(text ?? "{}");
const peer = await import(`./${system}.mjs`);
const { version } = JSON.parse(readFileSync(new URL(`node_modules/${system}/package.json`, import.meta.url), "utf8"));
const settings = { ...peer.settings(options.measure ?? action), ...options.settings };

/** About a hundred bytes of JSON, as for every system. */
const payload = (n, more = {}) => ({ n, to: "somebody@example.org", subject: "a line that fills the payload up to size", ...more });

/** Hands out the numbers below `count` in batches, to so many producers at a time. */
const inBatches = async (count, { batch, producers }, add) => {
  let next = 0;
  const produce = async () => {
    while (next < count) {
      const begin = next;
      next = Math.min(count, begin + batch);
      await add(Array.from({ length: next - begin }, (_, i) => begin + i));
    }
  };
  await Promise.all(Array.from({ length: producers }, produce));
};

const actions = {
  async setup() {
    await peer.setup(url, settings ?? {});
  },

  async fill() {
    await peer.bulk(url, { ...options, settings: { ...peer.settings("enqueue_bulk"), ...options.settings }, payload, inBatches });
  },

  // Fills finished jobs in, where the peer keeps them; nothing else may be there yet.
  async history() {
    if (!peer.finish) return;
    await actions.fill();
    const client = await connect();
    await client.query(peer.finish);
    await client.end();
  },

  async enqueue_bulk() {
    const begin = performance.now();
    await peer.bulk(url, { ...options, settings, payload, inBatches });
    print({ rate: perSecond(options.count, begin), settings });
  },

  async enqueue_single() {
    const { producers = 10 } = options;
    const producer = await peer.producer(url, producers);
    let next = 0;
    const begin = performance.now();
    const produce = async () => {
      while (next < options.count) await producer.add(payload(next++));
    };
    await Promise.all(Array.from({ length: producers }, produce));
    print({ rate: perSecond(options.count, begin), settings: { producers, ...settings } });
    await producer.close();
  },

  // From the first handler's start until the database says that the last job is finished.
  async drain() {
    const client = await connect();
    const { sleep_ms_max: sleep, count } = options;
    let begin, done = 0;
    const all = Promise.withResolvers();
    const handler = (job) => {
      begin ??= performance.now();
      if (!job.backlog && ++done === count) all.resolve();
      if (sleep) return new Promise((resolve) => setTimeout(resolve, Math.random() * sleep));
    };
    const before = await lsn(client);
    const worker = await peer.work(url, settings, handler);
    await all.promise;
    while ((await client.query(peer.unfinished)).rows[0].unfinished) await new Promise(setImmediate);
    const rate = perSecond(count, begin);
    const wal = await walSince(client, before);
    print({ rate, wal_per_job: Math.round(wal / count), settings });
    await client.end();
    await worker.stop();
  },

  // From just before the enqueue call to the handler's start, one job at a time, worker idle.
  async latency() {
    const { count, every_ms: every = 20 } = options;
    const started = new Map();
    const worker = await peer.work(url, settings, (job) => started.get(job.n)(performance.now()));
    const producer = await peer.producer(url, 1);
    const took = [];
    for (let n = -20; n < count; n++) {
      const { promise, resolve } = Promise.withResolvers();
      started.set(n, resolve);
      await new Promise((resolve) => setTimeout(resolve, every));
      const begin = performance.now();
      const [at] = await Promise.all([promise, producer.add(payload(n))]);
      if (n >= 0) took.push(at - begin); // the first twenty warm caches and prepared statements up
    }
    took.sort((a, b) => a - b);
    const percentile = (p) => Number(took[Math.min(took.length - 1, Math.floor(took.length * p))].toFixed(2));
    print({ p50_ms: percentile(0.5), p99_ms: percentile(0.99), settings });
    await producer.close();
    await worker.stop();
  },
};

const perSecond = (count, begin) => Math.round((count / (performance.now() - begin)) * 1000);

const print = ({ settings, ...measured }) =>
  console.log(JSON.stringify({ system, version, measure: options.measure ?? action, ...measured, settings: describe(settings) }));

const describe = (settings) =>
  Object.entries(settings).map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`).join(" ");

const connect = async () => {
  const client = new pg.Client(url);
  await client.connect();
  return client;
};

const lsn = async (client) => (await client.query("select pg_current_wal_lsn() as lsn")).rows[0].lsn;
const walSince = async (client, lsn) =>
  Number((await client.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), $1) as bytes", [lsn])).rows[0].bytes);

await actions[action]();
// Pools, timers and listeners of a peer that was measured are of no use any more.
process.exit(0);
