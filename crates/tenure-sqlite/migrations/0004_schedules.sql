-- 0004_schedules.sql: what asks for a job again and again, and the record of what happens to it.

-- When it fires is text that tenure_core::cron reads; nothing here computes with it. `version` grows with everything that
-- happens to a schedule: who wants to move it on names the one that was read. missed: 0 skip, 1 once.
create table schedule (
    -- Never given out again: a schedule that is removed and made anew is another one.
    id integer primary key autoincrement,
    version integer not null default 1 check (version > 0),
    tenant integer not null references tenant (id),
    name text not null check (length(name) between 1 and 100),
    cron text not null check (length(cast(cron as blob)) between 1 and 500),
    zone text not null check (length(cast(zone as blob)) between 1 and 100),
    missed integer not null check (missed in (0, 1)),
    grace_ms integer not null check (grace_ms between 0 and 31536000000),
    -- What each fire asks for, as in `job`.
    queue text not null check (length(queue) between 1 and 100),
    kind text not null check (length(kind) between 1 and 100),
    payload text not null check (length(cast(payload as blob)) <= 1048576 and json_valid(payload)),
    priority integer not null check (priority between 0 and 3),
    gate text check (gate is null or length(gate) between 1 and 100),
    max_attempts integer not null check (max_attempts between 1 and 1000),
    max_losses integer not null check (max_losses between 1 and 1003),
    backoff text not null,
    paused integer not null default 0 check (paused in (0, 1)),
    pause_reason text check (pause_reason is null or paused = 1),
    -- The last fire, or when it was made, changed or resumed.
    last_at integer not null,
    -- There is nothing to do before this.
    look_at integer not null,
    unique (tenant, name)
) strict;
create index schedule_look on schedule (look_at, id, tenant) where paused = 0;

-- S1: a fire time has one job, and a job is of one fire.
create table schedule_fire (
    schedule integer not null references schedule (id) on delete cascade,
    fire_at integer not null,
    job blob not null unique check (length(job) = 16),
    primary key (schedule, fire_at)
) strict, without rowid;

-- For people.
create view schedules as
select tenant.name as tenant, schedule.name as name, schedule.cron as cron, schedule.zone as zone,
    case schedule.missed when 0 then 'skip' else 'once' end as missed, schedule.queue as queue, schedule.kind as kind,
    schedule.payload as payload, schedule.paused as paused, schedule.pause_reason as pause_reason,
    (select strftime('%Y-%m-%dT%H:%M:%fZ', max(fire.fire_at) / 1e6, 'unixepoch')
        from schedule_fire as fire where fire.schedule = schedule.id) as last_fire_at
from schedule
join tenant on tenant.id = schedule.tenant;

-- event: from 27 on what happens to schedules; a few numbers are kept for what comes next. A check cannot be changed, so
-- the record moves once more, as in 0002.
drop view audit_log;
create table journal_next (
    id integer primary key autoincrement check (id > 0),
    at integer not null,
    worker integer,
    actor text,
    event integer not null check (event between 1 and 79 and event not in (10, 19)),
    lease integer,
    jobs text not null check (json_array_length(jobs) between 0 and 1000),
    reason text,
    details text check (details is null or json_valid(details))
) strict;
insert into journal_next (id, at, worker, actor, event, lease, jobs, reason, details)
select id, at, worker, actor, event, lease, jobs, reason, details from journal order by id;
insert into sqlite_sequence (name, seq)
select 'journal_next', 0 where not exists (select 1 from sqlite_sequence where name = 'journal_next');
update sqlite_sequence
set seq = coalesce((select old.seq from sqlite_sequence as old where old.name = 'journal'), 0)
where name = 'journal_next';
drop table journal;
alter table journal_next rename to journal;
create index journal_lease on journal (lease) where lease is not null;

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

create view audit_log as
select journal.id as id,
    strftime('%Y-%m-%dT%H:%M:%fZ', journal.at / 1e6, 'unixepoch') as at,
    case journal.event
        when 1 then 'claimed' when 2 then 'cancel_requested' when 3 then 'requeued' when 4 then 'opened'
        when 5 then 'pruned' when 6 then 'queue_paused' when 7 then 'queue_resumed' when 8 then 'journal_dropped'
        when 9 then 'rehomed' when 11 then 'succeeded' when 12 then 'retry' when 13 then 'failed' when 14 then 'dead'
        when 15 then 'canceled' when 16 then 'snoozed' when 17 then 'released' when 18 then 'lost'
        when 20 then 'refused' when 21 then 'gate_paused' when 22 then 'gate_resumed' when 23 then 'gate_tripped'
        when 24 then 'gate_reset' when 25 then 'gate_healed' when 26 then 'gate_ruled' when 27 then 'schedule_set'
        when 28 then 'schedule_removed' when 29 then 'schedule_paused' when 30 then 'schedule_resumed'
        when 31 then 'run_created' when 32 then 'run_sealed' when 33 then 'run_ended' when 34 then 'run_reopened'
        when 35 then 'run_canceled' when 36 then 'partition_resumed' when 37 then 'partition_reset' end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;
