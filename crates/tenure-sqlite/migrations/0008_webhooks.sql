-- 0008_webhooks.sql: who is told what, and what came of it.

-- Where a job's producer wants to be told how it ended. Most have none.
create table job_callback (
    job blob not null primary key,
    url text not null check (length(cast(url as blob)) <= 2000)
) strict, without rowid;

-- secret is sealed by the caller: no key of it is ever here. url null: each job says where to, by its callback_url.
create table webhook_endpoint (
    id blob not null primary key check (length(id) = 16),
    tenant integer not null references tenant (id),
    url text check (length(cast(url as blob)) <= 2000),
    events text not null check (length(events) > 0),
    prefix text not null check (length(cast(prefix as blob)) between 1 and 40),
    secret blob not null check (length(secret) between 1 and 400),
    previous blob,
    previous_until integer,
    created_at integer not null,
    -- Made, or enabled again.
    listens_since integer not null,
    disabled_at integer,
    disabled_why text,
    failing_since integer,
    check ((previous is null) = (previous_until is null)),
    check ((disabled_at is null) = (disabled_why is null))
) strict, without rowid;
create index webhook_endpoint_tenant on webhook_endpoint (tenant, id);
create unique index webhook_endpoint_callbacks on webhook_endpoint (tenant) where url is null;

-- One event for one endpoint, sent by the job of the same id; it goes when the job is pruned. state: 0 pending,
-- 1 delivered, 2 failed. tries: what came of each, an array of objects.
create table webhook_delivery (
    job blob not null primary key check (length(job) = 16),
    endpoint blob not null,
    tenant integer not null,
    journal integer not null,
    subject text not null,
    event_id text not null,
    event_type text not null,
    callback_url text,
    state integer not null default 0 check (state between 0 and 2),
    created_at integer not null,
    finished_at integer,
    resend_of blob,
    tries text not null default '[]',
    body text not null,
    check ((state = 0) = (finished_at is null))
) strict;
-- An event is told to an endpoint once, unless somebody asks for it again.
create unique index webhook_delivery_once on webhook_delivery (endpoint, journal, subject) where resend_of is null;
create index webhook_delivery_endpoint on webhook_delivery (endpoint, job);
create index webhook_delivery_tenant on webhook_delivery (tenant, job);

-- How far the journal is told: all seals before `seal`, and of that one the rows up to `after`.
create table webhook_cursor (
    one integer not null primary key check (one = 1),
    seal integer not null,
    after integer not null
) strict;
insert into webhook_cursor (one, seal, after) values (1, 1, 0);

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
        end as event,
    listed.value as job, journal.lease as lease, worker.name as worker, journal.actor as actor,
    journal.reason as reason, journal.details as details,
    (select seal.no from seal where journal.id between seal.first and seal.last) as seal
from journal
left join json_each(journal.jobs) as listed
left join worker on worker.id = journal.worker;

-- For people; secrets have no column here.
create view webhook_endpoints as
select lower(hex(webhook_endpoint.id)) as id, tenant.name as tenant, webhook_endpoint.url as url,
    webhook_endpoint.events as events, webhook_endpoint.prefix as prefix,
    strftime('%Y-%m-%dT%H:%M:%fZ', webhook_endpoint.created_at / 1e6, 'unixepoch') as created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', webhook_endpoint.disabled_at / 1e6, 'unixepoch') as disabled_at,
    webhook_endpoint.disabled_why as disabled_why
from webhook_endpoint
join tenant on tenant.id = webhook_endpoint.tenant;
