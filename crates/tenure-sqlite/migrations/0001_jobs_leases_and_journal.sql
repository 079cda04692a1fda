-- 0001_jobs_leases_and_journal.sql: everything the lease protocol stands on.
--
-- Facts are written once: `job` at enqueue, `attempt` when an attempt ends, `journal` at every transition. Only narrow
-- rows move: a `ready` row is deleted by the claim, a `lease` row lists what was claimed together.
--
--   enqueue            claim                end
--   job + ready  ──►  ready goes,   ──►  attempt (job, lease) comes;     a terminal ending is `final`,
--                     lease comes         the others put a ready row back
--
-- Ids are 16-byte uuids, times are microseconds since 1970, arrays are JSON. Checks repeat the rules of tenure-core.

create table migration (
    version integer primary key,
    name text not null,
    min_binary integer not null,   -- the version that a program must know to use the schema from then on
    applied_at integer not null
) strict;

create table tenant (
    id integer primary key,
    name text not null unique check (length(name) between 1 and 100),
    -- Pending jobs it may have in each fair queue, instead of the queue's own quota.
    quota integer check (quota between 1 and 100000)
) strict;

create table queue (
    id integer primary key,
    name text not null unique check (length(name) between 1 and 100),
    paused integer not null default 0 check (paused in (0, 1)),
    lease_ttl_ms integer not null default 60000 check (lease_ttl_ms between 1000 and 86400000),
    -- Each tenant has a line of its own.
    fair integer not null default 0 check (fair in (0, 1)),
    -- It has, or had, more lines than one. Never taken back: a job may be on its way into one of them.
    lined integer not null default 0 check (lined in (0, 1)),
    -- Pending jobs it may have, of each tenant where it is fair, of all where it is not.
    quota integer check (quota between 1 and 100000),
    -- It has, or had, jobs that are part of a run.
    parted integer not null default 0 check (parted in (0, 1))
) strict;

-- One row per start of a worker process.
create table worker (
    id integer primary key autoincrement,
    name text not null check (length(name) between 1 and 100),
    started_at integer not null
) strict;

-- The request, never updated.
create table job (
    id blob not null primary key check (length(id) = 16),
    tenant integer not null references tenant (id),
    queue integer not null references queue (id),
    kind text not null check (length(kind) between 1 and 100),
    -- Where it waits inside its queue: tenant number and gate, each where there is one (tenure_core::line).
    line text not null default '',
    priority integer not null check (priority between 0 and 3),
    payload text not null check (length(cast(payload as blob)) <= 1048576 and json_valid(payload)),
    max_attempts integer not null check (max_attempts between 1 and 1000),
    max_losses integer not null check (max_losses between 1 and 1003),
    backoff text not null,
    scope text,
    key text,
    policy integer check (policy between 1 and 4),
    trace text,
    -- What it is of its run (tenure_core::run::Part).
    part text check (length(part) >= 36),
    run_at integer not null,
    created_at integer not null,
    check ((scope is null) = (key is null) and (policy is null) = (key is null))
) strict;
create index job_of_tenant on job (tenant, id);
create index job_of_queue on job (queue, id);
create index job_of_kind on job (kind, id);
create index job_of_run on job (part) where part is not null;

-- state: 0 waiting, 1 queued, 2 retryable. A waiting row is due at the end of time, so that no claim walks over it.
create table ready (
    queue integer not null,
    line text not null,
    priority integer not null check (priority between 0 and 3),
    run_at integer not null check (run_at >= 0),
    job blob not null check (length(job) = 16),
    attempt integer not null check (attempt >= 0),
    losses integer not null check (losses >= 0),
    state integer not null check (state in (0, 1, 2)),
    check (state <> 0 or run_at = 9223372036854775807),
    primary key (queue, line, priority, run_at, job)
) strict, without rowid;
create unique index ready_job on ready (job);
create index ready_unusual on ready (state, job) where state <> 1;

-- The number is the fence: `autoincrement`, or it would repeat after a lease was deleted.
create table lease (
    no integer primary key autoincrement,
    queue integer not null,
    worker integer not null,
    claimed_at integer not null,
    renewed_at integer,
    expires_at integer not null,
    jobs text not null check (json_array_length(jobs) between 1 and 256),
    attempts text not null check (json_array_length(attempts) = json_array_length(jobs)),
    losses text not null check (json_array_length(losses) = json_array_length(jobs)),
    -- The gate each job passed, 0 for none; null when none has one.
    gates text check (gates is null or json_array_length(gates) = json_array_length(jobs))
) strict;
create index lease_expires on lease (expires_at, no);
insert into sqlite_sequence (name, seq) values ('lease', 0);

-- how: 1 succeeded, 2 retry, 3 failed, 4 dead, 5 canceled, 6 snoozed, 7 released, 8 lost. Two endings of one grant meet
-- on the primary key, so one wins and the other reads how it ended. `final` is cleared by a requeue.
create table attempt (
    job blob not null check (length(job) = 16),
    lease integer not null,
    attempt integer not null check (attempt >= 0),
    losses integer not null check (losses >= 0),
    how integer not null check (how between 1 and 8),
    final integer not null check (final in (0, 1)),
    worker integer,
    started_at integer,
    ended_at integer not null,
    error text check (error is null or json_valid(error)),
    result text check (result is null or json_valid(result)),
    usage text check (usage is null or json_valid(usage)),
    check (final = 0 or how in (1, 3, 4, 5)),
    primary key (job, lease)
) strict, without rowid;
create index attempt_ended on attempt (how, ended_at) where final = 1;
create index attempt_unsuccessful on attempt (how, job) where final = 1 and how <> 1;

-- Outlives its job. Scope '' is reserved for idempotency keys, whose `body` is the digest of the request.
create table unique_key (
    tenant integer not null,
    scope text not null,
    key text not null,
    job blob not null check (length(job) = 16),
    policy integer not null check (policy between 1 and 4),
    expires_at integer,
    body blob check (body is null or length(body) = 32),
    check ((policy = 4) = (expires_at is not null)),
    check ((scope = '') = (body is not null)),
    primary key (tenant, scope, key)
) strict, without rowid;
create index unique_key_expires on unique_key (expires_at) where expires_at is not null;

-- What gates allow: by name, or by beginning with a * (tenure_core::gate::rule).
create table gate_rule (
    pattern text not null primary key check (length(pattern) between 1 and 101),
    rate_count integer check (rate_count between 1 and 1000000),
    rate_period_ms integer check (rate_period_ms between 1 and 86400000),
    rate_burst integer check (rate_burst between 1 and 1000000),
    rate_cost integer check (rate_cost between 1 and rate_burst),
    concurrency integer check (concurrency between 1 and 1000000),
    breaker_failures integer check (breaker_failures between 1 and 1000),
    breaker_cooldown_ms integer check (breaker_cooldown_ms between 1 and 86400000),
    weight integer not null check (weight between 1 and 1000),
    check ((rate_count is null) = (rate_period_ms is null) and (rate_count is null) = (rate_burst is null)
        and (rate_count is null) = (rate_cost is null)),
    check ((breaker_failures is null) = (breaker_cooldown_ms is null))
) strict, without rowid;

-- Where a gate stands (tenure_core::gate::Gate).
create table gate (
    id integer primary key autoincrement,
    name text not null unique check (length(name) between 1 and 100),
    in_use integer not null default 0 check (in_use >= 0),
    full_at integer not null default 0,
    streak integer not null default 0 check (streak >= 0),
    open_until integer,
    probe integer,
    deaf_to integer not null default 0,
    newest integer not null default 0,
    paused_until integer,
    held_until integer,
    succeeded_at integer,
    failed_at integer,
    pause_reason text,
    trip_reason text,
    check (probe is null or open_until is not null)
) strict;

-- A job has left a gate; folded and deleted by the next claim. health: 1 healthy, 2 unhealthy.
create table gate_event (
    gate integer not null,
    id integer not null,
    lease integer not null,
    at integer not null,
    health integer check (health in (1, 2)),
    hold_until integer,
    primary key (gate, id)
) strict, without rowid;

create table cancel_request (
    job blob not null primary key check (length(job) = 16),
    requested_at integer not null
) strict, without rowid;

-- event: 1 claimed, 2 cancel requested, 3 requeued, 4 opened, 5 pruned, 6 queue paused, 7 queue resumed,
-- 8 journal dropped, 9 rehomed, 10 + how for endings.
create table journal (
    id integer primary key autoincrement check (id > 0),
    at integer not null,
    worker integer,
    actor text,
    event integer not null check (event between 1 and 18 and event <> 10),
    lease integer,
    jobs text not null check (json_array_length(jobs) between 0 and 1000),
    reason text,
    details text check (details is null or json_valid(details))
) strict;
create index journal_lease on journal (lease) where lease is not null;

-- Seal `no` covers the journal rows with ids from `first` to `last`.
create table seal (
    no integer primary key,
    first integer not null,
    last integer not null check (last >= first),
    sealed_at integer not null,
    rows integer not null check (rows > 0),
    prev blob not null unique check (length(prev) = 32),
    hash blob not null check (length(hash) = 32)
) strict;

create trigger job_is_fixed before update on job
begin
    select raise(abort, 'a job is written once: UPDATE of job is refused');
end;
create trigger attempt_is_fixed before update of job, lease, attempt, losses, how, worker, started_at, ended_at, error, result, usage on attempt
begin
    select raise(abort, 'an attempt is written once: UPDATE of attempt is refused');
end;
create trigger attempt_is_only_reopened before update of final on attempt
when new.final <> 0
begin
    select raise(abort, 'an attempt is written once: a requeue clears its final, and nothing sets it');
end;
create trigger lease_is_fixed before update of no, queue, worker, claimed_at, jobs, attempts, losses, gates on lease
begin
    select raise(abort, 'a lease is renewed, never rewritten: UPDATE of lease is refused');
end;
create trigger journal_is_fixed before update on journal
begin
    select raise(abort, 'the journal is append-only: UPDATE of journal is refused');
end;
create trigger journal_is_kept before delete on journal
begin
    select raise(abort, 'the journal is append-only: DELETE from journal is refused');
end;
-- REPLACE deletes without asking the triggers of DELETE, and a row with an id of its own choice may lie where no seal looks.
-- An id that is not given is -1 here.
create trigger journal_is_not_replaced before insert on journal
when new.id > 0
begin
    select raise(abort, 'the journal is append-only and numbers its rows itself: leave the id out');
end;
create trigger seal_is_fixed before update on seal
begin
    select raise(abort, 'a seal is closed for ever: UPDATE of seal is refused');
end;
create trigger seal_is_kept before delete on seal
begin
    select raise(abort, 'a seal is closed for ever: DELETE from seal is refused');
end;
create trigger seal_is_not_replaced before insert on seal
when exists (select 1 from seal where no = new.no or prev = new.prev)
begin
    select raise(abort, 'a seal is closed for ever: REPLACE in seal is refused');
end;

-- For people: one row per job with the columns they expect. Three branches with constant states; no job is in two.
-- Views use what SQLite 3.40 knows (Debian 12, Python 3.11), since one view that a program cannot parse closes the whole file to it.
-- So ids under leases, which are text there, are compared as text: `unhex` is newer.
create view jobs as
with held as materialized (
    select listed.value as job, lease.attempts ->> listed.key as attempts, lease.losses ->> listed.key as losses,
        lease.no as lease, lease.worker as worker, lease.claimed_at as locked_at,
        coalesce(lease.renewed_at, lease.claimed_at) as heartbeat_at, lease.expires_at as expires_at
    from lease, json_each(lease.jobs) as listed
), neither as (
    select job.id as job, lower(hex(job.id)) as hex
    from job
    where not exists (select 1 from ready where ready.job = job.id)
        and not exists (select 1 from attempt where attempt.job = job.id and attempt.final = 1)
), place as (
    select ready.job as job, case ready.state when 0 then 'waiting' when 1 then 'queued' else 'retryable' end as state,
        ready.attempt as attempts, ready.losses as losses,
        case ready.state when 0 then null else ready.run_at end as due, null as lease, null as worker, null as locked_at, null as heartbeat_at, null as expires_at, null as completed_at
    from ready
    union all
    select neither.job, 'running', held.attempts, held.losses, null, held.lease, held.worker, held.locked_at,
        held.heartbeat_at, held.expires_at, null
    from neither
    cross join held on held.job = substr(neither.hex, 1, 8) || '-' || substr(neither.hex, 9, 4) || '-'
        || substr(neither.hex, 13, 4) || '-' || substr(neither.hex, 17, 4) || '-' || substr(neither.hex, 21)
    where not exists (
        select 1 from attempt where attempt.job = neither.job and attempt.lease = held.lease)
    union all
    select attempt.job, case attempt.how
            when 1 then 'succeeded' when 3 then 'failed' when 4 then 'dead' else 'canceled' end,
        attempt.attempt, attempt.losses, null, null, null, null, null, null, attempt.ended_at
    from attempt
    where attempt.final = 1
), told as (
    select place.*, job.*, lower(hex(job.id)) as hex, tenant.name as tenant_name, queue.name as queue_name,
        worker.name as locked_by, last.error as error, last.ended_at as last_ended_at,
        last.started_at as last_started_at
    from place
    join job on job.id = place.job
    join tenant on tenant.id = job.tenant
    join queue on queue.id = job.queue
    left join worker on worker.id = place.worker
    left join attempt as last on last.job = job.id
        and last.lease = (select max(newest.lease) from attempt as newest where newest.job = job.id)
)
select substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4) || '-' || substr(hex, 17, 4) || '-'
        || substr(hex, 21) as id,
    tenant_name as tenant, queue_name as queue, kind, state, priority, attempts, max_attempts, losses, max_losses,
    case when instr(line, '/') > 0 then substr(line, instr(line, '/') + 1) end as gate,
    backoff, payload, trace, scope as unique_scope, key as unique_key,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(due, run_at) / 1e6, 'unixepoch') as run_at,
    case state when 'retryable' then strftime('%Y-%m-%dT%H:%M:%fZ', due / 1e6, 'unixepoch') end as next_retry_at,
    lease, locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', locked_at / 1e6, 'unixepoch') as locked_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1e6, 'unixepoch') as heartbeat_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') as lease_expires_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') as created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(locked_at, last_started_at) / 1e6, 'unixepoch') as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1e6, 'unixepoch') as completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(heartbeat_at, last_ended_at, created_at) / 1e6, 'unixepoch') as updated_at,
    coalesce(error ->> '$.message', error) as error_message, error
from told;

-- For people: the journal, one row per job and event. `seal` is null while a row is not sealed yet.
create view audit_log as
select journal.id as id,
    strftime('%Y-%m-%dT%H:%M:%fZ', journal.at / 1e6, 'unixepoch') as at,
    case journal.event
        when 1 then 'claimed' when 2 then 'cancel_requested' when 3 then 'requeued' when 4 then 'opened'
        when 5 then 'pruned' when 6 then 'queue_paused' when 7 then 'queue_resumed' when 8 then 'journal_dropped'
        when 9 then 'rehomed' when 11 then 'succeeded' when 12 then 'retry' when 13 then 'failed' when 14 then 'dead'
        when 15 then 'canceled' when 16 then 'snoozed' when 17 then 'released' when 18 then 'lost' end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;
