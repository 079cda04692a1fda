-- 0002_worker_registry.sql: workers say what they do, and reports that came too late are written down.

-- What a worker said last; all of it is null until its first beat. `queues` is an array of [name, slots].
alter table worker add column seen_at integer;
alter table worker add column state text check (state is null or state in ('startup', 'connecting', 'recovery',
    'polling', 'claiming', 'backoff', 'idle', 'error_wait', 'draining', 'stopped'));
alter table worker add column running integer check (running is null or running >= 0);
alter table worker add column reporting integer check (reporting is null or reporting >= 0);
alter table worker add column version text;
alter table worker add column host text;
alter table worker add column pid integer;
alter table worker add column queues text
    check (queues is null or (json_valid(queues) and json_array_length(queues) <= 100));

-- For people: the registry.
create view workers as
select worker.id as id, worker.name as name, worker.state as state, worker.running as running,
    worker.reporting as reporting, worker.version as version, worker.host as host, worker.pid as pid,
    (select group_concat(listed.slots, ', ')
        from (select (pair.value ->> 0) || '=' || (pair.value ->> 1) as slots
            from json_each(worker.queues) as pair order by pair.key) as listed) as queues,
    strftime('%Y-%m-%dT%H:%M:%fZ', worker.started_at / 1e6, 'unixepoch') as registered_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', worker.seen_at / 1e6, 'unixepoch') as seen_at
from worker;

-- Endings of the last hour, whatever they were: not only the final ones. Success is final, so that the usual ending
-- writes into the index what it wrote before.
drop index attempt_ended;
create index attempt_ended on attempt (final, how, ended_at);

-- event: 20 refused, and from 21 on what happens to gates. A check cannot be changed, so the record moves into a table of the same shape with a wider one: the
-- same ids, and the sequence goes on where it was. The view and the triggers go with the old table and come again.
drop view audit_log;
create table journal_next (
    id integer primary key autoincrement check (id > 0),
    at integer not null,
    worker integer,
    actor text,
    event integer not null check (event between 1 and 26 and event not in (10, 19)),
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
        when 24 then 'gate_reset' when 25 then 'gate_healed' when 26 then 'gate_ruled' end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;
