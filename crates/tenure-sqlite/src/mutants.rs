//! The fence predicates, and a way to drop one: a contract case must notice.

/// A change of every statement's text: what is found is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutation {
    /// A phrase of a statement.
    pub find: &'static str,
    /// What stands there instead. It keeps the parameters of the phrase, or the statement could not be run.
    pub replace: &'static str,
}

/// Every predicate that keeps somebody out: name, phrase, and the phrase without its effect.
pub const FENCES: &[(&str, &str, &str)] = &[
    ("a lease is its worker's", "and lease.worker = :worker", "and :worker is not null"),
    ("an ended attempt is its worker's", "and attempt.worker = :worker", "and :worker is not null"),
    (
        "a grant ends once",
        "on conflict (job, lease) do nothing",
        // The one update of an attempt that its triggers let pass.
        "on conflict (job, lease) do update set final = 0",
    ),
    ("a future job is not claimed", "and ready.run_at <= :now", "and :now is not null"),
    ("a paused queue hands out nothing", "and queue.paused = 0", ""),
    ("only an expired lease is reclaimed", "where lease.expires_at < :now", "where :now is not null"),
    (
        "a renewal pushes the deadline",
        "expires_at = :now + (expires_at - coalesce(renewed_at, claimed_at))",
        "expires_at = expires_at",
    ),
    ("only unknown leases are released", "lease.no not in (select value from json_each(:known))", ":known is not null"),
    ("a late sweep leaves newer leases alone", "and lease.no <= :newest", "and :newest is not null"),
    ("a requested cancel is met", "exists (select 1 from cancel_request where cancel_request.job = ready.job)", "0"),
    (
        "a requested cancel wins over putting back",
        "exists (select 1 from cancel_request where cancel_request.job = job.id)",
        "0",
    ),
    (
        "a tenant sees its own",
        "and (:sight is null or tenant.name = :sight)",
        "and (:sight is null or :sight is not null)",
    ),
    (
        "a lease in use is kept",
        "and not exists (\n    select 1 from json_each(lease.jobs)",
        "and 1 >= exists (\n    select 1 from json_each(lease.jobs)",
    ),
    (
        "a job is pruned after its leases",
        "and not exists (\n    select 1 from attempt as any_attempt",
        "and 1 >= exists (\n    select 1 from attempt as any_attempt",
    ),
    (
        "a page moves its own partition, from where it is",
        "and partition.job = :job and partition.next_offset = :offset",
        "and :job is not null",
    ),
    ("a page of an ended partition moves nothing", "and partition.state in (0, 1, 3) and partition.finished = 0", ""),
    (
        "what a run may revive is kept",
        "and not exists (select 1 from partition where partition.job = attempt.job and partition.state <> 2)",
        "",
    ),
    (
        "what a gate has counted is gone",
        "delete from gate_event where gate_event.gate = :gate",
        "delete from gate_event where :gate is null",
    ),
    ("a quota is its tenant's", "and ready.line < :end", "and :end is not null"),
    ("a schedule moves on from where it was read", "and schedule.version = :version", "and :version is not null"),
    (
        "a fire time has one job",
        "on conflict (schedule, fire_at) do nothing",
        "on conflict (schedule, fire_at) do update set job = excluded.job",
    ),
    ("a paused schedule fires nothing", "and schedule.paused = 0", ""),
    ("a fire is not before its time", "and coalesce(:fire_at, :now) <= :now", "and :now is not null"),
];
