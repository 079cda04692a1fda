//! Every metric. docs/METRICS.md has a line for each, and a test compares.

use super::text::Kind::{Counter, Gauge, Histogram};
use super::text::Metric;

/// The metrics of the store, in the order in which they are written.
pub(super) const OF_STORE: [&Metric; 23] = [
    &UP,
    &QUEUE_JOBS,
    &QUEUE_OLDEST,
    &QUEUE_PAUSED,
    &QUEUE_SLOTS,
    &DEAD,
    &ATTEMPTS,
    &RUN_SECONDS,
    &WAIT_SECONDS,
    &GATE_OPEN,
    &GATE_PAUSED,
    &GATE_PERMITS,
    &WORKERS,
    &RUNS_OPEN,
    &PARTITIONS,
    &PARTITIONS_STUCK,
    &PAGES_DUE,
    &PAGE_OLDEST,
    &ENDPOINTS,
    &ENDPOINTS_FAILING,
    &ENDPOINTS_DISABLED,
    &UNSEALED,
    &GATHER_SECONDS,
];

/// The metrics of this process.
pub(super) const OF_PROCESS: [&Metric; 5] = [&BUILD, &STARTED, &REQUESTS, &REQUEST_SECONDS, &STORE_ERRORS];

macro_rules! metrics {
    ($($constant:ident $name:literal $kind:ident $help:literal;)*) => {
        $(pub(super) static $constant: Metric = Metric { name: $name, kind: $kind, help: $help };)*
    };
}

metrics! {
    UP "tenure_up" Gauge "Whether the store answers.";
    QUEUE_JOBS "tenure_queue_jobs" Gauge "Jobs of a queue that are due, scheduled for later, or running.";
    QUEUE_OLDEST "tenure_queue_oldest_due_seconds" Gauge "How long the job that waits longest has been due.";
    QUEUE_PAUSED "tenure_queue_paused" Gauge "Whether claims of a queue are stopped.";
    QUEUE_SLOTS "tenure_queue_slots" Gauge "Slots that workers which are there have for a queue.";
    DEAD "tenure_dead_jobs" Gauge "Dead letters that are kept, at most 1000.";
    ATTEMPTS "tenure_attempts_total" Counter "Attempts that ended, by whoever worked on them.";
    RUN_SECONDS "tenure_attempt_run_seconds" Histogram "From claim to end, of attempts that did their work or failed at it.";
    WAIT_SECONDS "tenure_job_wait_seconds" Histogram "From when a job was due to its first start.";
    GATE_OPEN "tenure_gate_open" Gauge "Whether the breaker of a gate is open.";
    GATE_PAUSED "tenure_gate_paused" Gauge "Whether a gate is paused.";
    GATE_PERMITS "tenure_gate_permits_in_use" Gauge "Jobs inside a gate.";
    WORKERS "tenure_workers" Gauge "Worker processes that work, are quiet, or went silent within the last hour.";
    RUNS_OPEN "tenure_runs_open" Gauge "Runs that have not ended, at most 1000.";
    PARTITIONS "tenure_partitions" Gauge "Partitions that have not begun or are on their way, at most 1000 together.";
    PARTITIONS_STUCK "tenure_partitions_stuck" Gauge "Partitions that have not moved for ten minutes, at most 1000.";
    PAGES_DUE "tenure_pages_due" Gauge "Pages of partitions that nobody runs, at most 1000.";
    PAGE_OLDEST "tenure_page_oldest_seconds" Gauge "How long the slowest partition that has begun has been at its page.";
    ENDPOINTS "tenure_webhook_endpoints" Gauge "Webhook endpoints, at most 1000.";
    ENDPOINTS_FAILING "tenure_webhook_endpoints_failing" Gauge "Endpoints at which nothing arrives.";
    ENDPOINTS_DISABLED "tenure_webhook_endpoints_disabled" Gauge "Endpoints that are sent nothing.";
    UNSEALED "tenure_journal_unsealed_seconds" Gauge "Age of the oldest entry of the journal that no seal covers.";
    GATHER_SECONDS "tenure_metrics_gather_seconds" Gauge "How long the store took to answer for this page.";
    BUILD "tenure_build_info" Gauge "The version of this process, always 1.";
    STARTED "process_start_time_seconds" Gauge "When this process began, in seconds since 1970.";
    REQUESTS "tenure_http_requests_total" Counter "Requests that were answered.";
    REQUEST_SECONDS "tenure_http_request_seconds" Histogram "How long answers took; a claim may wait for work.";
    STORE_ERRORS "tenure_store_errors_total" Counter "Requests that failed because of the store.";
}
