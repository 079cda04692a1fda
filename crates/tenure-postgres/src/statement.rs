//! Every statement of our own, by name.

/// A statement and the verb it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The file's name without its ending.
    pub name: &'static str,
    /// Its text.
    pub sql: &'static str,
}

macro_rules! statements {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: Statement = Statement { name: $name, sql: include_str!(concat!("sql/", $name, ".sql")) };)*
        /// All of them.
        pub const ALL: &[Statement] = &[$($constant),*];
    };
}

statements! {
    /// Stores jobs.
    ENQUEUE_JOBS = "enqueue_jobs";
    /// Stores jobs that have no keys.
    ENQUEUE_PLAIN = "enqueue_plain";
    /// Takes due jobs.
    CLAIM_JOBS = "claim_jobs";
    /// Takes due jobs of a queue with lines.
    CLAIM_LINES = "claim_lines";
    /// Lines that have something due.
    LIST_LINES = "list_lines";
    /// Gates with what was reported of them.
    LIST_GATES = "list_gates";
    /// Rules of gates.
    LIST_RULES = "list_rules";
    /// Schedules, a page or one.
    LIST_SCHEDULES = "list_schedules";
    /// Schedules that have to be looked at.
    DUE_SCHEDULES = "due_schedules";
    /// Fires of a schedule.
    LIST_FIRES = "list_fires";
    /// Tenants, a page or one.
    LIST_TENANTS = "list_tenants";
    /// Keys, a page or one.
    LIST_API_KEYS = "list_api_keys";
    /// Begins a session.
    BEGIN_SESSION = "begin_session";
    /// Webhook endpoints, a page or one.
    LIST_ENDPOINTS = "list_endpoints";
    /// A webhook endpoint, held.
    HOLD_ENDPOINT = "hold_endpoint";
    /// Writes a webhook endpoint.
    SAVE_ENDPOINT = "save_endpoint";
    /// Whom events concern.
    LIST_SUBJECTS = "list_subjects";
    /// Stores deliveries.
    ADD_DELIVERIES = "add_deliveries";
    /// Deliveries, a page.
    LIST_DELIVERIES = "list_deliveries";
    /// Deliveries of a tenant, a page.
    LIST_DELIVERIES_OF_TENANT = "list_deliveries_of_tenant";
    /// Deliveries to an endpoint, a page.
    LIST_DELIVERIES_OF_ENDPOINT = "list_deliveries_of_endpoint";
    /// Deliveries in full.
    SHOW_DELIVERIES = "show_deliveries";
    /// Operations, a page or one.
    LIST_OPERATIONS = "list_operations";
    /// Writes down how far an operation is.
    SAVE_OPERATION = "save_operation";
    /// Sums of what happened.
    LIST_ROLLUPS = "list_rollups";
    /// Gates that fail.
    LIST_FAILING_GATES = "list_failing_gates";
    /// What was used.
    SUM_USAGE = "sum_usage";
    /// Keeps an answer.
    PUT_CACHED = "put_cached";
    /// Deletes answers that are over or too many.
    PRUNE_CACHE = "prune_cache";
    /// Ends attempts as succeeded.
    COMPLETE_JOBS = "complete_jobs";
    /// Ends attempts, each its own way.
    END_JOBS = "end_jobs";
    /// Reads how attempts ended.
    LOOK_UP_ENDINGS = "look_up_endings";
    /// Tells a report that was not written how its attempts ended, and writes down what came too late.
    REFUSE_ENDINGS = "refuse_endings";
    /// Pushes deadlines out.
    RENEW_LEASES = "renew_leases";
    /// Deletes emptied leases.
    DROP_LEASES = "drop_leases";
    /// Takes back what expired.
    RECLAIM_JOBS = "reclaim_jobs";
    /// Gives back what a lost reply left behind.
    RELEASE_UNKNOWN = "release_unknown";
    /// May this worker sweep?
    ELECT_SWEEP = "elect_sweep";
    /// Jobs in full, by id.
    SHOW_JOBS = "show_jobs";
    /// Jobs as lists show them, by id.
    SUMMARIZE_JOBS = "summarize_jobs";
    /// Attempts of one job.
    SHOW_ATTEMPTS = "show_attempts";
    /// Ids of jobs in any state.
    LIST_JOBS = "list_jobs";
    /// Ids of waiting, queued or retryable jobs.
    LIST_READY = "list_ready";
    /// Ids of running jobs.
    LIST_RUNNING = "list_running";
    /// Ids of failed, dead or canceled jobs.
    LIST_UNSUCCESSFUL = "list_unsuccessful";
    /// Jobs whose payload contains a text.
    SEARCH_JOBS = "search_jobs";
    /// Queues with counts.
    LIST_QUEUES = "list_queues";
    /// How attempts ended lately.
    COUNT_ENDINGS = "count_endings";
    /// What a worker does.
    BEAT_WORKER = "beat_worker";
    /// Workers, last seen first.
    LIST_WORKERS = "list_workers";
    /// Runs, newest first.
    LIST_RUNS = "list_runs";
    /// Runs that nobody else holds.
    LOCK_RUNS = "lock_runs";
    /// One run, against everybody.
    HOLD_RUN = "hold_run";
    /// One run, against its seal.
    SHARE_RUN = "share_run";
    /// Where a run stands.
    SAVE_RUN = "save_run";
    /// Partitions by run and name.
    LIST_PARTITIONS = "list_partitions";
    /// Partitions that nobody else holds.
    LOCK_PARTITIONS = "lock_partitions";
    /// Where partitions stand.
    SAVE_PARTITIONS = "save_partitions";
    /// New partitions.
    ADD_PARTITIONS = "add_partitions";
    /// What was said of runs.
    READ_RUN_EVENTS = "read_run_events";
    /// The last seal, and the boundary of a new one.
    OPEN_SEAL = "open_seal";
    /// Writes a seal.
    WRITE_SEAL = "write_seal";
    /// Seals in order.
    LIST_SEALS = "list_seals";
    /// Rows between two snapshots.
    READ_SEALED = "read_sealed";
    /// Rows after a snapshot.
    READ_TAIL = "read_tail";
    /// Rows of one job.
    LIST_JOB_ROWS = "list_job_rows";
    /// Rows that match, newest first.
    LIST_JOURNAL = "list_journal";
    /// Notifies queues with an idle worker.
    WAKE_IDLE = "wake_idle";
    /// Says that a worker is idle.
    PUSH_IDLE = "push_idle";
}
