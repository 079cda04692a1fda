-- 0001_tables: facts are written once, narrow rows move, an ending locks nothing shared.
--
-- A job is *ready* while it has a ready row, *running* while a lease lists it and no attempt row with that lease
-- exists; otherwise its final attempt row says how it ended. There are no foreign keys between the hot tables: each
-- would lock a shared row per job. What they would guard is checked by tenure.violations.

-- The cluster that this database lives in, one row per era; the newest row is valid. In another cluster transaction ids
-- start anew, and sealing would miss rows. On another timeline the sequences may be older than the numbers that workers hold.
create table tenure.home (
  era smallint primary key,
  system_identifier bigint not null,
  -- The timeline of the numbers that are drawn now (tenure.follow_timeline).
  timeline bigint not null,
  since timestamptz not null default clock_timestamp(),
  -- Journal rows of this era have larger ids, rows of the eras before have no larger ones.
  journal_after bigint not null default 0
);

-- The timeline that this server writes. pg_walfile_name is right from the moment of a promotion on; pg_control_checkpoint
-- says the old timeline until the next checkpoint, and is asked only where the server refuses the other function.
-- pg_walfile_name is declared immutable: with a constant in place of the position, a plan would keep its answer for ever.
do $$ begin
  perform pg_walfile_name(pg_current_wal_insert_lsn());
  execute $f$
    create function tenure.timeline() returns bigint language sql volatile as
      'select (''x'' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint' $f$;
exception when feature_not_supported or insufficient_privilege or undefined_function then
  execute $f$
    create function tenure.timeline() returns bigint language sql volatile as 'select timeline_id::bigint from pg_control_checkpoint()' $f$;
end $$;

-- Ids of tenants and queues are derived from their names (tenure.derived_id): transactions that bring the same new name
-- at the same time agree on its id, and none waits for another.
create table tenure.tenant (
  id int primary key,
  name text not null unique check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  -- Pending jobs it may have in each fair queue, instead of the queue's own quota.
  quota int check (quota between 1 and 100000)
);

create table tenure.queue (
  id int primary key,
  name text not null unique check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  lease_ttl_ms int not null default 60000 check (lease_ttl_ms between 1000 and 86400000),
  paused boolean not null default false,
  -- Each tenant has a line of its own.
  fair boolean not null default false,
  -- It has, or had, more lines than one. Never taken back: a job may be on its way into one of them.
  lined boolean not null default false check (lined or not fair),
  -- Pending jobs it may have, of each tenant where it is fair, of all where it is not.
  quota int check (quota between 1 and 100000),
  -- It has, or had, jobs that are part of a run.
  parted boolean not null default false,
  -- An idle worker wants to be woken until then; never cleared, it runs out.
  idle_until timestamptz not null default '-infinity',
  -- When somebody last looked below the floors for rows that were committed late.
  swept_at timestamptz not null default '-infinity'
) with (fillfactor = 50);

-- What an open transaction brings: tenants and queues without a row, and queues that get their first line or their first
-- part of a run. It is entered in tenure.tenant and tenure.queue when that transaction commits (tenure.enter_names), and
-- deleted here, so a committed row never exists. An open transaction thus holds no row that others need.
create table tenure.new_name (
  xid xid8 not null default pg_current_xact_id(),
  what text not null check (what in ('tenant', 'queue', 'lined', 'parted')),
  id int not null,
  name text check ((name is not null) = (what in ('tenant', 'queue')))
);
create index new_name_of on tenure.new_name (xid, what, name);
create index new_name_id on tenure.new_name (id, what);

-- What gates allow: by name, or by beginning with a * (tenure_core::gate::rule).
create table tenure.gate_rule (
  pattern text collate "C" primary key check (pattern ~ '^([A-Za-z0-9._:/-]{1,100}[*]?|[*])$'),
  rate_count bigint check (rate_count between 1 and 1000000),
  rate_period_ms bigint check (rate_period_ms between 1 and 86400000),
  rate_burst bigint check (rate_burst between 1 and 1000000),
  rate_cost bigint check (rate_cost between 1 and rate_burst),
  concurrency int check (concurrency between 1 and 1000000),
  breaker_failures int check (breaker_failures between 1 and 1000),
  breaker_cooldown_ms bigint check (breaker_cooldown_ms between 1 and 86400000),
  weight int not null default 1 check (weight between 1 and 1000),
  -- The gate_rules.version that brought this rate.
  rate_version bigint not null default 0,
  check (num_nonnulls(rate_count, rate_period_ms, rate_burst, rate_cost) in (0, 4)),
  check (num_nonnulls(breaker_failures, breaker_cooldown_ms) in (0, 2))
);

-- Grows with every change of a rule: a gate looks for its rule again when it has not seen this one.
create table tenure.gate_rules (
  version bigint not null,
  changed_at timestamptz not null
);
create unique index gate_rules_one on tenure.gate_rules ((true));
insert into tenure.gate_rules (version, changed_at) values (0, 'epoch');

-- Where a gate stands (tenure_core::gate::Gate). Written under its lock by the claim, which takes it or skips it, and by
-- operators. No index names what changes: an update stays on its page.
create table tenure.gate (
  id int generated always as identity primary key,
  name text collate "C" not null unique check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  pattern text collate "C",                         -- the rule it obeys, as of rules_seen
  rules_seen bigint not null default -1,
  folded_to xid8 not null default '0',              -- events of older transactions are folded
  in_use int not null default 0 check (in_use >= 0),
  full_at timestamptz not null default 'epoch',
  streak int not null default 0 check (streak >= 0),
  open_until timestamptz,
  probe bigint check (probe is null or open_until is not null),
  deaf_to bigint not null default 0,
  newest bigint not null default 0,
  paused_until timestamptz,
  held_until timestamptz,
  succeeded_at timestamptz,
  failed_at timestamptz,
  pause_reason text,
  trip_reason text
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- A job has left a gate; folded and deleted by the next claim. health: 1 healthy, 2 unhealthy, null: nobody knows.
create table tenure.gate_event (
  id bigint generated always as identity (cache 1),
  gate int not null,
  xid xid8 not null default pg_current_xact_id(),
  lease bigint not null,
  at timestamptz not null,
  health smallint check (health in (1, 2)),
  hold_until timestamptz
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index gate_event_fold on tenure.gate_event (gate, xid);

-- One row per start of a worker process; two starts may share a name.
create table tenure.worker (
  id int generated always as identity primary key,
  name text not null check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  registered_at timestamptz not null default clock_timestamp()
);

-- The durable request. Written once, never updated (trigger below).
create table tenure.job (
  id uuid primary key,
  created_at timestamptz not null,
  run_at timestamptz not null,                      -- as asked; the ready row knows the current one
  tenant int not null,
  queue int not null,
  -- Where it waits inside its queue: tenant number and gate, each where there is one (tenure_core::line).
  line text collate "C" not null default '',
  priority smallint not null default 2 check (priority between 0 and 3),
  max_attempts smallint not null default 5 check (max_attempts between 1 and 1000),
  max_losses smallint not null default 8 check (max_losses between 1 and 1003),
  kind text not null check (length(kind) between 1 and 100),
  backoff text,                                     -- null: the default policy
  unique_policy smallint check (unique_policy between 1 and 4),
  unique_scope text,
  unique_key text,
  trace text,
  -- What it is of its run (tenure_core::run::Part): run, run:partition:offset, run/consolidate.
  part text collate "C" check (length(part) >= 36),
  -- KiB of the payload's text, rounded up: claims are bounded by it.
  kib smallint not null default 1 check (kib > 0),
  payload jsonb not null,
  check ((unique_policy is null) = (unique_key is null) and (unique_key is null) = (unique_scope is null))
);

create index job_part on tenure.job (part) where part is not null;

-- Where its producer wants to be told how it ended. Most have none.
create table tenure.job_callback (
  job uuid primary key,
  url text not null check (octet_length(url) <= 2000)
);

-- state: 0 queued, 1 retryable, 2 waiting (run_at infinity until it is opened). Claiming deletes the row.
create table tenure.ready (
  run_at timestamptz not null,
  job uuid not null,
  queue int not null,
  line text collate "C" not null default '',
  priority smallint not null check (priority between 0 and 3),
  attempt smallint not null default 0 check (attempt >= 0),
  losses smallint not null default 0 check (losses >= 0),
  state smallint not null default 0 check (state between 0 and 2),
  kib smallint not null default 1 check (kib > 0),  -- as in its job
  check ((state = 2) = (run_at = 'infinity'))
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.05);
create index ready_claim on tenure.ready (queue, line, priority, run_at, job);
create unique index ready_job on tenure.ready (job);

-- The fenced, time-bound right to run what was claimed together. `no` is the fence: cache 1, drawn after the ready rows
-- are deleted. Only renewed_at and expires_at ever change.
create table tenure.lease (
  no bigint generated always as identity (cache 1) primary key,
  queue int not null,
  worker int not null,
  claimed_at timestamptz not null,
  renewed_at timestamptz not null,
  expires_at timestamptz not null,
  jobs uuid[] not null check (cardinality(jobs) between 1 and 256),
  attempts smallint[] not null check (cardinality(attempts) = cardinality(jobs)),
  losses smallint[] not null check (cardinality(losses) = cardinality(jobs)),
  -- The gate each job passed, null where it has none; null when none has one.
  gates int[] check (cardinality(gates) = cardinality(jobs))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0,
        -- Ids do not compress: trying to cost an eighth of the drain, here and in the journal.
        toast_tuple_target = 8160);

-- One row per ended attempt. Two endings of one grant meet on the key, so one wins and the other learns how it ended.
-- how: 1 succeeded 2 retry 3 failed 4 dead 5 canceled 6 snoozed 7 released 8 lost.
-- final: the job ended with it; requeue clears the flag. At most one final row per job is kept by the verbs and checked
-- by tenure.violations: a unique partial index would cost 84 bytes of WAL a job.
create table tenure.attempt (
  job uuid not null,
  lease bigint not null,
  started_at timestamptz,                           -- null: ended without a lease
  ended_at timestamptz not null,
  worker int,
  attempt smallint not null check (attempt >= 0),
  losses smallint not null default 0 check (losses >= 0),
  how smallint not null check (how between 1 and 8),
  final boolean not null check (not final or how in (1, 3, 4, 5)),
  error jsonb,
  result jsonb,
  usage jsonb,
  primary key (job, lease)
);
create index attempt_unsuccessful on tenure.attempt (how, job) where final and how <> 1;
create index attempt_ended on tenure.attempt using brin (ended_at) with (autosummarize = on);

-- Many jobs with one goal (tenure_core::run). state: 0 queued 1 running 2 succeeded 3 failed 4 canceled. fan, how the
-- consolidate stands: 0 none 1 waiting 2 skipped 3 open, 10 + how. Counts are written by the fold and by operators only,
-- who hold the row; whoever adds members holds it for key share, which a seal waits for.
create table tenure.run (
  id uuid primary key,
  tenant int not null,
  owner text,
  source text,
  state smallint not null default 0 check (state between 0 and 4),
  sealed boolean not null,
  fail_fast boolean not null,
  tolerated bigint not null check (tolerated >= 0),
  expired boolean not null default false,
  total bigint not null default 0 check (total >= 0),
  done bigint not null default 0 check (done >= 0),
  failed bigint not null default 0 check (failed >= 0),
  canceled bigint not null default 0 check (canceled >= 0),
  consolidate uuid unique,
  fan smallint not null check ((fan = 0) = (consolidate is null)),
  -- What is left of it is being canceled.
  sweeping boolean not null default false,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz check ((finished_at is null) = (state in (0, 1))),
  deadline timestamptz,
  -- Otherwise it is for being sealed only.
  deadline_asked boolean not null,
  last_error jsonb,
  check (state <> 2 or sealed),
  check (sealed or deadline is not null)
) with (fillfactor = 50);
create index run_state on tenure.run (state, id);
create index run_open on tenure.run (tenant) where state in (0, 1);
create index run_deadline on tenure.run (deadline) where state in (0, 1) and deadline is not null;
create index run_sweeping on tenure.run (id) where sweeping;

-- One stream of pages. `job` is the page that is next or was last; next_offset moves in that page's own transaction.
create table tenure.partition (
  run uuid not null,
  name text collate "C" not null check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  state smallint not null default 0 check (state between 0 and 4),
  next_offset bigint not null check (next_offset >= 0),
  page_limit int not null check (page_limit between 1 and 1000000),
  rows bigint not null default 0 check (rows >= 0),
  expected bigint,
  job uuid not null unique,
  finished boolean not null default false check (finished or state <> 2),
  last_error jsonb,
  created_at timestamptz not null,
  started_at timestamptz,
  moved_at timestamptz not null,
  primary key (run, name)
) with (fillfactor = 70);
create index partition_active on tenure.partition (moved_at) where state in (0, 1);

-- What jobs said of their run; folded and deleted. told: 0 added, 9 started, how, or -how for one that was revived.
create table tenure.run_event (
  id bigint generated always as identity (cache 1) primary key,
  xid xid8 not null default pg_current_xact_id(),
  part text not null,
  job uuid,
  told smallint not null check (told between -5 and 9),
  members bigint not null default 1,
  at timestamptz not null,
  error jsonb
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index run_event_fold on tenure.run_event (xid);

-- One folds at a time. Events of older transactions are folded.
create table tenure.run_fold (
  folded_to xid8 not null
);
create unique index run_fold_one on tenure.run_fold ((true));
insert into tenure.run_fold (folded_to) values ('0');

-- policy: 1 while_active, 2 unless_failed, 3 forever, 4 window. Endings touch no key; the next enqueue that meets a key
-- whose holder has let go takes it over. Idempotency keys are windows in a scope no kind can have.
create table tenure.unique_key (
  tenant int not null,
  scope text not null,
  key text not null,
  policy smallint not null check (policy between 1 and 4),
  job uuid not null,
  expires_at timestamptz,
  digest bytea,                                     -- of an idempotent request's body
  primary key (tenant, scope, key),
  check ((policy = 4) = (expires_at is not null))
);
create index unique_key_expires on tenure.unique_key (expires_at) where expires_at is not null;

-- The holder of a running job is asked to stop. Met by the holder, by reclaim, or by the next claim.
create table tenure.cancel_request (
  job uuid primary key,
  requested_at timestamptz not null,
  actor text,
  reason text
);

-- Every transition, in the same statement. event: 1 claimed 2 cancel_requested 3 requeued 4 opened 5 pruned
-- 6 queue_paused 7 queue_resumed 8 journal_dropped 9 rehomed, 10 + how for endings.
-- xid comes before id: defaults are evaluated in column order, so a row's id is drawn after its transaction has an xid.
-- Sealing depends on this (tenure-postgres/src/journal/seal.rs): a transaction that begins after a snapshot has larger ids only.
create table tenure.journal (
  -- Smaller numbers are no transactions, and no snapshot leaves them out.
  xid xid8 not null default pg_current_xact_id() check (xid > '2'),
  id bigint generated always as identity (cache 1) primary key check (id > 0),
  at timestamptz not null,
  era smallint not null,
  event smallint not null check (event between 1 and 18 and event <> 10),
  worker int,
  lease bigint,
  jobs uuid[] not null check (cardinality(jobs) <= 1000),
  actor text,
  reason text,
  details jsonb
) with (toast_tuple_target = 8160);
create index journal_xid on tenure.journal (xid, id);
create index journal_lease on tenure.journal (lease) where lease is not null;
create index journal_job on tenure.journal ((jobs[1])) where lease is null and cardinality(jobs) = 1;

-- One part of the sealed journal, at most some thousand rows (tenure-postgres/src/journal/seal.rs). Before it, rows were
-- sealed that are visible in `before` and have ids up to `floor`. It covers rows visible in `snapshot` (null: all rows of an
-- ended era) with ids above `after` and up to `upto`: above the floor every one, below the floor those of transactions that
-- were in flight at `before`. While upto < floor, the next seal continues with the same before, floor and snapshot.
create table tenure.seal (
  no bigint primary key check (no > 0),
  era smallint not null,
  before pg_snapshot not null,
  floor bigint not null check (floor >= 0),
  snapshot pg_snapshot,
  after bigint not null check (after >= 0),
  upto bigint not null check (upto >= after),
  sealed_at timestamptz not null,
  rows bigint not null check (rows >= 0),
  prev bytea not null unique check (length(prev) = 32),
  hash bytea not null unique check (length(hash) = 32)
);

insert into tenure.home (era, system_identifier, timeline) select 1, system_identifier, tenure.timeline() from pg_control_system();
insert into tenure.tenant (id, name) values (1, 'default');
insert into tenure.queue (id, name) values (1, 'default');
