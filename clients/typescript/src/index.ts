/**
 * A client and a worker for Tenure, by docs/WORKER-PROTOCOL.md.
 *
 * Layout, in reading order:
 *   client     Client: enqueue, show, cancel, requeue, register
 *   worker     Worker: runs handlers under leases; signals: runUntilSignal
 *   outcomes   Fail, Snooze, Canceled: how a handler says that it did not complete
 *   context    Context: what a handler may ask and say while it runs
 *   lease      Lease: the deadline and the jobs of one claim
 *   claims, renewals, reports, beats: the four things a worker says, one file each
 *   session    Session: the raw verbs of a registered worker
 *   transport  one HTTP call; errors: Problem, Unreachable
 *
 * All times of this package are seconds, except where a name ends in `Ms`.
 */
export { Client, type ClientOptions, type Enqueued, type JobView, type NewJob, type Unique } from "./client.js";
export { type Context } from "./context.js";
export { type Handler } from "./endings.js";
export { Problem, Unreachable } from "./errors.js";
export { type Event, type Listener } from "./events.js";
export { type Job } from "./job.js";
export { Canceled, Fail, type FailOptions, Snooze } from "./outcomes.js";
export { type Session } from "./session.js";
export { runUntilSignal } from "./signals.js";
export { Worker, type WorkerOptions } from "./worker.js";
