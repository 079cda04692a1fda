-- 0013_access: who may do what. Tenants with quotas, keys, workers that come over HTTP, and what workers are told.

-- A key's secret is never here, only its SHA-256: it is 160 random bits, which no dictionary holds.
create table tenure.api_key (
  id text collate "C" primary key check (id ~ '^[a-z2-7]{12}$'),
  hash bytea not null check (length(hash) = 32),
  tenant int references tenure.tenant (id),                 -- null: operators, who see every tenant
  name text not null check (octet_length(name) between 1 and 500),
  scopes text not null check (scopes ~ '^(enqueue|read|operate|worker|admin)(,(enqueue|read|operate|worker|admin))*$'),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  used_at timestamptz,                                      -- to the minute; no index names it
  -- Queues belong to all tenants, so a worker's key belongs to none.
  check (tenant is null or strpos(scopes, 'worker') = 0)
) with (fillfactor = 70);
create index api_key_tenant on tenure.api_key (tenant, id);

create index tenant_quota on tenure.tenant (id) where quota is not null;

-- remote_key and remote_hash: a worker that comes over HTTP proves itself with a token of its own.
alter table tenure.worker
  add column told text not null default 'work' check (told in ('work', 'quiet', 'stop')),
  add column remote_key text collate "C",
  add column remote_hash bytea check (length(remote_hash) = 32),
  add constraint worker_remote_check check (num_nonnulls(remote_key, remote_hash) in (0, 2));

create or replace view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost', null, 'refused', 'gate_paused',
    'gate_resumed', 'gate_tripped', 'gate_reset', 'gate_healed', 'gate_ruled', 'schedule_set', 'schedule_removed', 'schedule_paused',
    'schedule_resumed', 'run_created', 'run_sealed', 'run_ended', 'run_reopened', 'run_canceled', 'partition_resumed', 'partition_reset',
    'tenant_set', 'key_created', 'key_revoked', 'worker_ordered'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;

-- For people; secrets have no column here.
create view tenure.api_keys as
select k.id, t.name as tenant, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.used_at
from tenure.api_key k left join tenure.tenant t on t.id = k.tenant;

create function tenure.note_access(_event smallint, _details jsonb, _actor text, _reason text, _now timestamptz) returns void language sql as $$
  insert into tenure.journal (at, event, jobs, actor, reason, details) values (_now, _event, '{}', coalesce(_actor, session_user), _reason, jsonb_strip_nulls(_details))
$$;

-- Makes a tenant or changes its quota (0: none, null: as it is); answers whether it is new.
create function tenure.set_tenant(_tenant text, _quota int, _actor text, _reason text, _now timestamptz) returns boolean language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  is_new boolean;
  t tenure.tenant;
  wanted int;
begin
  insert into tenure.tenant (name) values (_tenant) on conflict do nothing;
  is_new := found;
  select * into t from tenure.tenant where name = _tenant for update;
  wanted := case when _quota is null then t.quota else nullif(_quota, 0) end;
  if is_new or wanted is distinct from t.quota then
    update tenure.tenant set quota = wanted where id = t.id;
    perform tenure.note_access(38::smallint, jsonb_build_object('tenant', _tenant, 'quota', wanted), _actor, _reason, moment);
  end if;
  return is_new;
end $$;

-- Makes a key, or finds the one that this very request made; answers how: created, found or taken. One that is a tenant's
-- usable key beyond _max is refused with _refusal.
create function tenure.create_key(_id text, _hash bytea, _tenant text, _name text, _scopes text, _life_ms bigint, _replaces text, _overlap_ms bigint,
  _actor text, _reason text, _now timestamptz, _max bigint, _refusal text) returns text language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  owner int := (select t.id from tenure.tenant t where t.name = _tenant);
  before record;
begin
  if _tenant is not null and owner is null then
    raise exception 'tenant % is not known here', _tenant using errcode = 'TN404';
  end if;
  insert into tenure.api_key (id, hash, tenant, name, scopes, created_at, expires_at)
    values (_id, _hash, owner, _name, _scopes, moment, moment + _life_ms * interval '1 ms') on conflict do nothing;
  if not found then
    perform tenure.await_standbys();
    return case when exists (select from tenure.api_key k where k.id = _id and k.hash = _hash and k.tenant is not distinct from owner and k.name = _name and k.scopes = _scopes)
      then 'found' else 'taken' end;
  end if;
  if _replaces is not null then
    select k.expires_at, k.revoked_at into before from tenure.api_key k
      where k.id = _replaces and (owner is null or k.tenant = owner) for update;
    if not found then raise exception 'key % is not known here', _replaces using errcode = 'TN404'; end if;
    if before.revoked_at is not null then
      raise exception 'key % is revoked: make a new one', _replaces using errcode = 'TN409';
    end if;
    -- tenure_core::key::end_of_successor
    if before.expires_at <= moment then
      raise exception 'key % has ended: make a new one', _replaces using errcode = 'TN409';
    end if;
    update tenure.api_key k set expires_at = before.expires_at where k.id = _id and _life_ms is null;
    update tenure.api_key k set expires_at = least(before.expires_at, moment + _overlap_ms * interval '1 ms') where k.id = _replaces;
    perform tenure.note_access(40::smallint, jsonb_build_object('key', _replaces, 'tenant', _tenant, 'replaced_by', _id), _actor, _reason, moment);
  end if;
  if owner is not null then
    perform tenure.count_alone(3, owner);
    if _max < (select count(*) from (
        select from tenure.api_key k where k.tenant = owner and k.revoked_at is null and (k.expires_at is null or k.expires_at > moment) limit _max + 1) c) then
      raise exception using message = _refusal, errcode = 'TN423';
    end if;
  end if;
  perform tenure.note_access(39::smallint, jsonb_build_object('key', _id, 'tenant', _tenant, 'scopes', _scopes), _actor, _reason, moment);
  return 'created';
end $$;

-- Ends a key at once; answers whether it was not revoked before.
create function tenure.revoke_key(_key text, _tenant text, _actor text, _reason text, _now timestamptz) returns boolean language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  k record;
begin
  select a.id, a.revoked_at, t.name as tenant into k from tenure.api_key a left join tenure.tenant t on t.id = a.tenant
    where a.id = _key and (_tenant is null or t.name = _tenant) for update of a;
  if not found then raise exception 'key % is not known here', _key using errcode = 'TN404'; end if;
  if k.revoked_at is not null then return false; end if;
  update tenure.api_key a set revoked_at = moment where a.id = _key;
  perform tenure.note_access(40::smallint, jsonb_build_object('key', _key, 'tenant', k.tenant), _actor, _reason, moment);
  return true;
end $$;

-- Tells a worker what to do: select tenure.order_worker(17, 'quiet');
create function tenure.order_worker(worker int, told text, actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
declare before text; begin
  perform tenure.check_text('reason', reason);
  select w.told into before from tenure.worker w where w.id = order_worker.worker for update;
  if not found then raise exception 'worker % is not known here', worker using errcode = 'TN404'; end if;
  if told is null or told not in ('work', 'quiet', 'stop') then perform tenure.refuse('order', coalesce(told, 'null'), 'it is work, quiet or stop'); end if;
  if before = told then return; end if;
  update tenure.worker w set told = order_worker.told where w.id = order_worker.worker;
  perform tenure.note_access(41::smallint, jsonb_build_object('worker', worker, 'order', told), actor, reason, coalesce(now, clock_timestamp()));
end $$;
