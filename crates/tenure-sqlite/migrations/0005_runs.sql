-- 0005_runs.sql: many jobs with one goal (tenure_core::run).
--
-- state: 0 queued, 1 running, 2 succeeded, 3 failed, 4 canceled. fan: 0 none, 1 waiting, 2 skipped, 3 open, 10 + how.

create table run (
    id blob not null primary key check (length(id) = 16),
    tenant integer not null references tenant (id),
    owner text,
    source text,
    state integer not null check (state between 0 and 4),
    sealed integer not null check (sealed in (0, 1)),
    fail_fast integer not null check (fail_fast in (0, 1)),
    tolerated integer not null check (tolerated >= 0),
    expired integer not null default 0 check (expired in (0, 1)),
    total integer not null default 0 check (total >= 0),
    done integer not null default 0 check (done >= 0),
    failed integer not null default 0 check (failed >= 0),
    canceled integer not null default 0 check (canceled >= 0),
    consolidate blob unique check (length(consolidate) = 16),
    fan integer not null check ((fan = 0) = (consolidate is null)),
    -- What is left of it is being canceled.
    sweeping integer not null default 0 check (sweeping in (0, 1)),
    created_at integer not null,
    started_at integer,
    finished_at integer check ((finished_at is null) = (state in (0, 1))),
    deadline integer,
    -- Otherwise it is for being sealed only.
    deadline_asked integer not null check (deadline_asked in (0, 1)),
    last_error text check (last_error is null or json_valid(last_error)),
    check (state <> 2 or sealed = 1),
    check (sealed = 1 or deadline is not null)
) strict, without rowid;
create index run_of_state on run (state, id);
create index run_open on run (tenant) where state in (0, 1);
create index run_deadline on run (deadline) where state in (0, 1) and deadline is not null;
create index run_sweeping on run (id) where sweeping = 1;

-- One stream of pages. `job` is the page that is next or was last; next_offset moves in that page's own transaction.
create table partition (
    run blob not null,
    name text not null check (length(name) between 1 and 100),
    state integer not null default 0 check (state between 0 and 4),
    next_offset integer not null check (next_offset >= 0),
    page_limit integer not null check (page_limit between 1 and 1000000),
    rows integer not null default 0 check (rows >= 0),
    expected integer,
    job blob not null unique check (length(job) = 16),
    finished integer not null default 0 check (finished in (0, 1)),
    last_error text check (last_error is null or json_valid(last_error)),
    created_at integer not null,
    started_at integer,
    moved_at integer not null,
    check (state <> 2 or finished = 1),
    primary key (run, name)
) strict, without rowid;
create index partition_active on partition (moved_at) where state in (0, 1);

-- What jobs said of their run; folded and deleted. told: 0 added, 9 started, how, or -how for one that was revived.
create table run_event (
    id integer primary key autoincrement,
    part text not null,
    job blob,
    told integer not null check (told between -5 and 9),
    members integer not null default 1,
    at integer not null,
    error text
) strict;
