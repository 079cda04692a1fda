-- 0010_pages.sql: what the pages of the dashboard ask for.

-- Somebody who signed in with a key. Of the token only its SHA-256 is here: it is 256 random bits.
create table session (
    hash blob not null primary key check (length(hash) = 32),
    key text not null references api_key (id),
    began_at integer not null,
    expires_at integer not null check (expires_at > began_at)
) strict, without rowid;
create index session_expires on session (expires_at);
create index session_key on session (key);

-- What people and rules did is rare among what workers write under their leases.
create index journal_acts on journal (id) where lease is null or worker is null;

-- The story of a job: rows of its leases are found by journal_lease, the others here.
create index journal_job on journal (json_extract(jobs, '$[0]')) where lease is null and json_array_length(jobs) = 1;

drop view audit_log;
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
        when 35 then 'run_canceled' when 36 then 'partition_resumed' when 37 then 'partition_reset'
        when 38 then 'tenant_set' when 39 then 'key_created' when 40 then 'key_revoked' when 41 then 'worker_ordered'
        when 42 then 'endpoint_set' when 43 then 'endpoint_removed' when 44 then 'endpoint_disabled'
        when 45 then 'endpoint_pinged' when 46 then 'deliveries_resent'
        when 47 then 'hastened'
        end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;
