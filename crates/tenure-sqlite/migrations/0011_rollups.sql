-- 0011_rollups.sql: what happened, summed by time, tenant, queue and kind, so that no chart counts jobs
-- (tenure_store::rollup).

-- step: 0 a minute, 1 a quarter of an hour, 2 two hours, 3 all of it, at 1970. counters: claimed, then by the codes of the
-- endings; run and wait: by the bounds of tenure_core::histogram. All are numbers with commas between, without the last
-- zeros. Every sum is there twice: for its tenant and for tenant 0, who is all of them, so that a chart of everything does
-- not read a line for each tenant.
create table rollup (
    step integer not null check (step between 0 and 3),
    at integer not null,
    tenant integer not null,
    queue integer not null references queue (id),
    kind text not null check (length(kind) between 1 and 100),
    counters text not null,
    run text not null,
    run_micros integer not null,
    wait text not null,
    wait_micros integer not null,
    primary key (step, at, tenant, queue, kind)
) strict, without rowid;
create index rollup_tenant on rollup (tenant, step, at);

-- How attempts ended that passed a gate, as far as that tells how the gate did.
create table gate_rollup (
    step integer not null check (step between 0 and 3),
    at integer not null,
    tenant integer not null,
    gate text not null,
    ended integer not null,
    unhealthy integer not null check (unhealthy between 0 and ended),
    primary key (step, at, tenant, gate)
) strict, without rowid;
create index gate_rollup_tenant on gate_rollup (tenant, step, at);

-- The last row of the journal that is summed. Ids are in the order of the commits, so it needs no seal.
create table rollup_cursor (
    one integer primary key check (one = 1),
    after integer not null
) strict;
insert into rollup_cursor (one, after) values (1, 0);

-- Whether a job waited to be opened.
create index journal_opened on journal (jobs) where event = 4;
