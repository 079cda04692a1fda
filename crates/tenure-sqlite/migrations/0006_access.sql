-- 0006_access.sql: who may do what. Keys, workers that come over HTTP, and what workers are told.

-- A key's secret is never here, only its SHA-256: it is 160 random bits, which no dictionary holds.
create table api_key (
    id text not null primary key check (length(id) = 12),
    hash blob not null check (length(hash) = 32),
    -- Null: operators, who see every tenant.
    tenant integer references tenant (id),
    name text not null check (length(cast(name as blob)) between 1 and 500),
    scopes text not null check (length(scopes) > 0),
    created_at integer not null,
    expires_at integer,
    revoked_at integer,
    -- To the minute.
    used_at integer,
    -- Queues belong to all tenants, so a worker's key belongs to none.
    check (tenant is null or instr(scopes, 'worker') = 0)
) strict, without rowid;

-- remote_key and remote_hash: a worker that comes over HTTP proves itself with a token of its own.
alter table worker add column told text not null default 'work' check (told in ('work', 'quiet', 'stop'));
alter table worker add column remote_key text;
alter table worker add column remote_hash blob check (length(remote_hash) = 32);

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
        end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;

-- For people; secrets have no column here.
create view api_keys as
select api_key.id as id, tenant.name as tenant, api_key.name as name, api_key.scopes as scopes,
    strftime('%Y-%m-%dT%H:%M:%fZ', api_key.created_at / 1e6, 'unixepoch') as created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', api_key.expires_at / 1e6, 'unixepoch') as expires_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', api_key.revoked_at / 1e6, 'unixepoch') as revoked_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', api_key.used_at / 1e6, 'unixepoch') as used_at
from api_key
left join tenant on tenant.id = api_key.tenant;
