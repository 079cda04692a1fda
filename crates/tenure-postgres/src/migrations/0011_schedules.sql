-- 0011_schedules: what asks for a job again and again.
--
-- When a schedule fires is text that tenure_core::cron reads; nothing here computes with it. Who wants to move one on
-- names the version that was read: tenure.fire_schedules is the compare-and-set, the row of the fire and the job in one.

create table tenure.schedule (
  id bigint generated always as identity primary key,
  version bigint not null default 1 check (version > 0),   -- grows with everything that happens to it
  tenant int not null references tenure.tenant (id),
  name text collate "C" not null check (name ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  cron text not null check (octet_length(cron) between 1 and 500),
  zone text not null check (octet_length(zone) between 1 and 100),
  missed text not null check (missed in ('skip', 'once')),
  grace_ms bigint not null check (grace_ms between 0 and 31536000000),
  -- What each fire asks for, as in tenure.job.
  queue text not null check (queue ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  kind text not null check (kind ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  payload jsonb not null,
  priority smallint not null check (priority between 0 and 3),
  gate text check (gate ~ '^[A-Za-z0-9._:/-]{1,100}$'),
  max_attempts smallint not null check (max_attempts between 1 and 1000),
  max_losses smallint not null check (max_losses between 1 and 1003),
  backoff text,                                             -- null: the default policy
  paused boolean not null default false,
  pause_reason text check (pause_reason is null or paused),
  last_at timestamptz not null,                             -- the last fire, or when it was made, changed or resumed
  look_at timestamptz not null,                             -- there is nothing to do before this
  unique (tenant, name)
) with (fillfactor = 50);
create index schedule_look on tenure.schedule (look_at, id) include (tenant) where not paused;

-- S1: a fire time has one job, and a job is of one fire.
create table tenure.schedule_fire (
  schedule bigint not null references tenure.schedule (id) on delete cascade,
  fire_at timestamptz not null,
  job uuid not null unique,
  primary key (schedule, fire_at)
);

-- event: from 27 on what happens to schedules; a few numbers are kept for what comes next. Not validated, as in 0008.
alter table tenure.journal
  drop constraint journal_event_check,
  add constraint journal_event_check check (event between 1 and 79 and event not in (10, 19)) not valid;

create or replace view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost', null, 'refused', 'gate_paused',
    'gate_resumed', 'gate_tripped', 'gate_reset', 'gate_healed', 'gate_ruled', 'schedule_set', 'schedule_removed', 'schedule_paused',
    'schedule_resumed', 'run_created', 'run_sealed', 'run_ended', 'run_reopened', 'run_canceled', 'partition_resumed', 'partition_reset'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;

create view tenure.schedules as
select t.name as tenant, s.name, s.cron, s.zone, s.missed, s.queue, s.kind, s.payload, s.paused, s.pause_reason,
  (select max(f.fire_at) from tenure.schedule_fire f where f.schedule = s.id) as last_fire_at
from tenure.schedule s join tenure.tenant t on t.id = s.tenant;

create function tenure.note_schedule(_event smallint, _tenant text, _schedule text, _timing jsonb, _actor text, _reason text, _now timestamptz)
  returns void language sql as $$
  insert into tenure.journal (at, event, jobs, actor, reason, details)
  values (_now, _event, '{}', coalesce(_actor, session_user), _reason, jsonb_build_object('tenant', _tenant, 'schedule', _schedule) || coalesce(_timing, '{}'))
$$;

-- Makes a schedule or changes it; answers created, changed or same. The library has checked every value: SQL cannot read a
-- cron expression, so there is no such function for people. A new one beyond _max of its tenant is refused with _refusal.
create function tenure.put_schedule(_tenant text, _name text, _cron text, _zone text, _missed text, _grace_ms bigint, _queue text, _kind text,
  _payload jsonb, _priority smallint, _gate text, _max_attempts smallint, _max_losses smallint, _backoff text, _actor text, _reason text, _now timestamptz,
  _max bigint, _refusal text)
  returns text language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  owner int := (tenure.tenant_ids(array[_tenant]))[1];
  s tenure.schedule;
  anew boolean;
begin
  insert into tenure.schedule (tenant, name, cron, zone, missed, grace_ms, queue, kind, payload, priority, gate, max_attempts, max_losses, backoff, last_at, look_at)
    values (owner, _name, _cron, _zone, _missed, _grace_ms, _queue, _kind, _payload, _priority, _gate, _max_attempts, _max_losses, _backoff, moment, moment)
    on conflict do nothing;
  if found then
    perform tenure.count_alone(1, owner);
    if _max < (select count(*) from (select from tenure.schedule t where t.tenant = owner limit _max + 1) c) then
      raise exception using message = _refusal, errcode = 'TN423';
    end if;
    perform tenure.note_schedule(27::smallint, _tenant, _name, jsonb_build_object('cron', _cron, 'zone', _zone), _actor, _reason, moment);
    return 'created';
  end if;
  select * into s from tenure.schedule t where t.tenant = owner and t.name = _name for update;
  if not found then
    raise exception 'schedule % was removed meanwhile', _name using errcode = '40001';
  end if;
  anew := (s.cron, s.zone, s.missed, s.grace_ms) is distinct from (_cron, _zone, _missed, _grace_ms);
  if not anew and (s.queue, s.kind, s.payload, s.priority, s.gate, s.max_attempts, s.max_losses, s.backoff)
      is not distinct from (_queue, _kind, _payload, _priority, _gate, _max_attempts, _max_losses, _backoff) then
    return 'same';
  end if;
  update tenure.schedule t set version = t.version + 1, cron = _cron, zone = _zone, missed = _missed, grace_ms = _grace_ms, queue = _queue, kind = _kind,
      payload = _payload, priority = _priority, gate = _gate, max_attempts = _max_attempts, max_losses = _max_losses, backoff = _backoff,
      last_at = case when anew then moment else t.last_at end, look_at = case when anew then moment else t.look_at end
    where t.id = s.id;
  perform tenure.note_schedule(27::smallint, _tenant, _name, jsonb_build_object('cron', _cron, 'zone', _zone), _actor, _reason, moment);
  return 'changed';
end $$;

create function tenure.remove_schedule(schedule text, tenant text default 'default', actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
begin
  perform tenure.check_text('reason', reason);
  delete from tenure.schedule s using tenure.tenant t where t.id = s.tenant and t.name = remove_schedule.tenant and s.name = schedule;
  if not found then raise exception 'schedule % is not known here', schedule using errcode = 'TN404'; end if;
  perform tenure.note_schedule(28::smallint, tenant, schedule, null, actor, reason, coalesce(now, clock_timestamp()));
end $$;

create function tenure.switch_schedule(_schedule text, _paused boolean, _reason text, _tenant text, _actor text, _now timestamptz) returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  s tenure.schedule;
begin
  perform tenure.check_text('reason', _reason);
  select s0.* into s from tenure.schedule s0 join tenure.tenant t on t.id = s0.tenant where t.name = _tenant and s0.name = _schedule for update of s0;
  if not found then raise exception 'schedule % is not known here', _schedule using errcode = 'TN404'; end if;
  if s.paused = _paused then return; end if;
  update tenure.schedule t set version = t.version + 1, paused = _paused, pause_reason = case when _paused then _reason end,
      last_at = case when _paused then t.last_at else moment end, look_at = case when _paused then t.look_at else moment end
    where t.id = s.id;
  perform tenure.note_schedule((case when _paused then 29 else 30 end)::smallint, _tenant, _schedule, null, _actor, _reason, moment);
end $$;

-- It fires nothing until it is resumed: select tenure.pause_schedule('nightly', 'month end');
create function tenure.pause_schedule(schedule text, reason text default null, tenant text default 'default', actor text default null, now timestamptz default null)
  returns void language sql as $$ select tenure.switch_schedule(schedule, true, reason, tenant, actor, now) $$;

-- It goes on from now; what it would have fired meanwhile is not made up: select tenure.resume_schedule('nightly');
create function tenure.resume_schedule(schedule text, reason text default null, tenant text default 'default', actor text default null, now timestamptz default null)
  returns void language sql as $$ select tenure.switch_schedule(schedule, false, reason, tenant, actor, now) $$;

-- Moves schedules on from the versions that were read and stores the jobs of their fires; answers stored, passed or lost for
-- each, in the order given. A schedule whose row is locked is being changed or fired by another transaction and answers lost:
-- an open transaction delays no other schedule.
create function tenure.fire_batch(_schedules bigint[], _versions bigint[], _fire_ats timestamptz[], _jobs uuid[], _look_ats timestamptz[], _kept bigint, _now timestamptz)
  returns text[] language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  free bigint[];
  moved int[];
  fired int[];
  refused uuid;
  answers text[];
begin
  free := array(
    select t.id from unnest(_schedules, _versions) i (schedule, version) join tenure.schedule t on t.id = i.schedule and t.version = i.version
    order by t.id for no key update of t skip locked);
  with m as (
    update tenure.schedule t set version = t.version + 1, last_at = greatest(t.last_at, i.fire_at), look_at = i.look_at
      from unnest(_schedules, _versions, _fire_ats, _look_ats) with ordinality i (schedule, version, fire_at, look_at, ord)
      where t.id = any (free) and t.id = i.schedule and not t.paused and coalesce(i.fire_at, moment) <= moment
      returning i.ord::int as ord
  )
  select array_agg(m.ord) into moved from m;
  with f as (
    insert into tenure.schedule_fire (schedule, fire_at, job)
      select i.schedule, i.fire_at, i.job from unnest(_schedules, _fire_ats, _jobs) with ordinality i (schedule, fire_at, job, ord)
      where i.ord = any (moved) and i.fire_at is not null
      on conflict (schedule, fire_at) do nothing
      returning schedule
  )
  select array_agg(i.ord::int order by i.ord) into fired from unnest(_schedules) with ordinality i (schedule, ord) join f on f.schedule = i.schedule;
  if fired is not null then
    select e.job into refused from (
      select array_agg(i.job order by i.ord) as ids, array_agg(w.name order by i.ord) as tenants, array_agg(s.queue order by i.ord) as queues, array_agg(s.kind order by i.ord) as kinds,
        array_agg(s.payload order by i.ord) as payloads, array_agg(s.priority order by i.ord) as priorities, array_agg(i.fire_at order by i.ord) as run_ats, array_agg(null::bigint) as none,
        array_agg(false) as waiting, array_agg(s.max_attempts order by i.ord) as max_attempts, array_agg(s.max_losses order by i.ord) as max_losses,
        array_agg(s.backoff order by i.ord) as backoffs, array_agg(null::text) as no_text, array_agg(null::smallint) as no_policy, array_agg(s.gate order by i.ord) as gates
      from unnest(_schedules, _fire_ats, _jobs) with ordinality i (schedule, fire_at, job, ord)
      join tenure.schedule s on s.id = i.schedule join tenure.tenant w on w.id = s.tenant
      where i.ord = any (fired)
    ) n cross join lateral tenure.enqueue_rows(n.ids, n.tenants, n.queues, n.kinds, n.payloads, n.priorities, n.run_ats, n.none, n.waiting, n.max_attempts, n.max_losses,
      n.backoffs, n.no_text, n.no_policy, n.none, n.no_text, n.no_text, n.no_text, moment, n.gates) e
      where not e.created limit 1;
    if found then
      raise exception 'id `%` is refused: it is in use, make a new one', refused using errcode = 'TN422';
    end if;
    delete from tenure.schedule_fire f
      using unnest(_schedules) with ordinality i (schedule, ord) cross join lateral (
        select o.fire_at from tenure.schedule_fire o where o.schedule = i.schedule order by o.fire_at desc limit 1 offset _kept - 1) oldest
      where i.ord = any (fired) and f.schedule = i.schedule and f.fire_at < oldest.fire_at;
    perform tenure.wake(q.queue) from (
      select distinct s.queue from unnest(_schedules) with ordinality i (schedule, ord) join tenure.schedule s on s.id = i.schedule where i.ord = any (fired)) q;
  end if;
  -- A fire whose very job is there was stored by this request before, and its reply was lost.
  answers := array(
    select case when i.ord = any (fired) then 'stored'
      when i.ord = any (moved) then case when i.fire_at is null then 'passed' else 'lost' end
      when exists (select from tenure.schedule_fire f where f.schedule = i.schedule and f.fire_at = i.fire_at and f.job = i.job) then 'repeated'
      else 'lost' end
    from unnest(_schedules, _fire_ats, _jobs) with ordinality i (schedule, fire_at, job, ord) order by i.ord);
  if 'repeated' = any (answers) then
    perform tenure.await_standbys();
  end if;
  return array_replace(answers, 'repeated', 'stored');
end $$;

-- Fires a batch of schedules in one transaction. Only when a fire is refused are the fires of the batch stored one by one, so
-- that the refused ones alone are undone: they answer with the error's code and message.
create function tenure.fire_schedules(_schedules bigint[], _versions bigint[], _fire_ats timestamptz[], _jobs uuid[], _look_ats timestamptz[], _kept bigint, _now timestamptz default null)
  returns table (answer text, code text, message text) language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  answers text[];
begin
  begin
    answers := tenure.fire_batch(_schedules, _versions, _fire_ats, _jobs, _look_ats, _kept, moment);
    return query select a.answer, null::text, null::text from unnest(answers) with ordinality a (answer, ord) order by a.ord;
    return;
  exception when sqlstate 'TN409' or sqlstate 'TN422' or sqlstate 'TN429' or data_exception or integrity_constraint_violation then
    null;                                                         -- fired one by one below
  end;
  for i in 1..cardinality(_schedules) loop
    begin
      answers := tenure.fire_batch(_schedules[i:i], _versions[i:i], _fire_ats[i:i], _jobs[i:i], _look_ats[i:i], _kept, moment);
      answer := answers[1]; code := null; message := null;
    exception when sqlstate 'TN409' or sqlstate 'TN422' or sqlstate 'TN429' or data_exception or integrity_constraint_violation then
      answer := 'refused'; code := sqlstate; message := sqlerrm;
    end;
    return next;
  end loop;
end $$;
