-- 0015_webhooks: who is told what, and what came of it.

-- secret is sealed by the caller: no key of it is ever here. url null: each job says where to, by its callback_url.
create table tenure.webhook_endpoint (
  id uuid primary key,
  tenant int not null references tenure.tenant (id),
  url text check (octet_length(url) <= 2000),
  events text not null check (length(events) > 0),
  prefix text not null check (octet_length(prefix) between 1 and 40),
  secret bytea not null check (length(secret) between 1 and 400),
  previous bytea,
  previous_until timestamptz,
  created_at timestamptz not null,
  listens_since timestamptz not null,                       -- made, or enabled again
  disabled_at timestamptz,
  disabled_why text,
  failing_since timestamptz,
  check (num_nonnulls(previous, previous_until) in (0, 2)),
  check (num_nonnulls(disabled_at, disabled_why) in (0, 2))
);
create index webhook_endpoint_tenant on tenure.webhook_endpoint (tenant, id);
create unique index webhook_endpoint_callbacks on tenure.webhook_endpoint (tenant) where url is null;

-- One event for one endpoint, sent by the job of the same id; it goes when the job is pruned. state: 0 pending 1 delivered
-- 2 failed. tries: what came of each, an array of objects.
create table tenure.webhook_delivery (
  job uuid primary key,
  endpoint uuid not null references tenure.webhook_endpoint (id) on delete cascade,
  tenant int not null,
  journal bigint not null,
  subject text collate "C" not null,
  event_id text not null,
  event_type text not null,
  callback_url text,
  state smallint not null default 0 check (state between 0 and 2),
  created_at timestamptz not null,
  finished_at timestamptz,
  resend_of uuid,
  tries jsonb not null default '[]' check (jsonb_typeof(tries) = 'array'),
  body text not null,
  check ((state = 0) = (finished_at is null))
) with (fillfactor = 70);
-- An event is told to an endpoint once, unless somebody asks for it again.
create unique index webhook_delivery_once on tenure.webhook_delivery (endpoint, journal, subject) where resend_of is null;
create index webhook_delivery_endpoint on tenure.webhook_delivery (endpoint, job);
create index webhook_delivery_tenant on tenure.webhook_delivery (tenant, job);

-- How far the journal is told: all seals before `seal`, and of that one the rows up to `after`.
create table tenure.webhook_cursor (
  seal bigint not null,
  after bigint not null
);
create unique index webhook_cursor_one on tenure.webhook_cursor ((true));
insert into tenure.webhook_cursor (seal, after) values (1, 0);

create or replace view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost', null, 'refused', 'gate_paused',
    'gate_resumed', 'gate_tripped', 'gate_reset', 'gate_healed', 'gate_ruled', 'schedule_set', 'schedule_removed', 'schedule_paused',
    'schedule_resumed', 'run_created', 'run_sealed', 'run_ended', 'run_reopened', 'run_canceled', 'partition_resumed', 'partition_reset',
    'tenant_set', 'key_created', 'key_revoked', 'worker_ordered', 'endpoint_set', 'endpoint_removed', 'endpoint_disabled',
    'endpoint_pinged', 'deliveries_resent'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;

-- For people; secrets have no column here.
create view tenure.webhook_endpoints as
select e.id, t.name as tenant, e.url, e.events, e.prefix, e.created_at, e.disabled_at, e.disabled_why, e.failing_since
from tenure.webhook_endpoint e join tenure.tenant t on t.id = e.tenant;

create view tenure.webhook_deliveries as
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, (array['pending', 'delivered', 'failed'])[d.state + 1] as state,
  d.created_at, d.finished_at, d.resend_of, jsonb_array_length(d.tries) as tries, d.tries -> -1 ->> 'status' as last_status
from tenure.webhook_delivery d join tenure.tenant t on t.id = d.tenant;

-- Nobody listened until now: what happened before is not told.
create function tenure.begin_to_tell() returns void language sql as $$
  update tenure.webhook_cursor set seal = (select coalesce(max(s.no), 0) + 1 from tenure.seal s), after = 0
  where not exists (select from tenure.webhook_endpoint e where e.disabled_at is null)
$$;
