-- 0003_views: jobs and audit_log, as people expect to read them.
-- A union of branches with constant states: a filter on state plans only its own branch.

-- Whether a number is beyond the range of a 64-bit float, at either end. Such a number has up to 131,072 digits as text.
create function tenure.has_extreme_number(_json jsonb) returns boolean language sql immutable parallel safe as $$
  select jsonb_path_exists(_json, 'strict $.** ? (@.type() == "number" && (@ > 179769313486231570e291 || @ < -179769313486231570e291
    || (@ != 0 && @ < 2.48e-324 && @ > -2.48e-324)))')
$$;

-- A document as text; null where it is longer than _bytes_max. Every document that the verbs have stored can be read.
-- One that was written past them may be too long for any text, and must not stop those who read it beside others.
create function tenure.json_text(_json jsonb, _bytes_max int) returns text language plpgsql stable as $$
declare
  written text;
begin
  if _json is null or tenure.has_extreme_number(_json) then return null; end if;
  written := _json::text;
  return case when octet_length(written) <= _bytes_max then written end;
exception when program_limit_exceeded or out_of_memory then
  return null;
end $$;

-- The same for records that are hashed or shown: in place of a document that is too long stand its type and its digest.
create function tenure.json_shown(_json jsonb, _bytes_max int default 1048576) returns text language sql stable as $$
  select case when _json is not null then coalesce(tenure.json_text(_json, _bytes_max),
    format('{"unreadable": "%s", "digest": "%s"}', jsonb_typeof(_json), jsonb_hash_extended(_json, 0))) end
$$;

-- What a person reads of an error. No subtransaction here: it would keep readers of tenure.jobs from parallel plans.
create function tenure.error_message(error jsonb) returns text language sql immutable parallel safe as $$
  select case jsonb_typeof(error)
      when 'string' then error #>> '{}'
      when 'object' then coalesce(error ->> 'message', case when not tenure.has_extreme_number(error) then error::text end)
      else case when not tenure.has_extreme_number(error) then error::text end
    end
$$;

-- A transaction sees its own jobs under names that it brings; they have no row yet.
create view tenure.jobs as
with ready as not materialized (
  select r.state as code, j.*, r.run_at as due, r.attempt, r.losses, p.ended_at, p.error, p.usage
  from tenure.ready r
  join tenure.job j on j.id = r.job
  left join lateral (
    select a.ended_at, a.error, a.usage from tenure.attempt a where a.job = r.job order by a.lease desc limit 1
  ) p on true
), held as not materialized (
  select j.*, l.no, l.worker, l.claimed_at, l.renewed_at, l.expires_at, u.attempt, u.losses
  from tenure.lease l
  cross join lateral unnest(l.jobs, l.attempts, l.losses) u (job, attempt, losses)
  join tenure.job j on j.id = u.job
  where not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
), ended as not materialized (
  select a.how, j.*, a.attempt, a.losses, a.started_at, a.ended_at, a.worker, a.lease, a.error, a.result, a.usage
  from tenure.attempt a
  join tenure.job j on j.id = a.job
  where a.final
), shown as (
  select id, tenant, queue, kind, payload, priority, 'waiting' as state, attempt, max_attempts, losses, max_losses,
    created_at as due, null::timestamptz as next_retry_at, null::int as worker, null::bigint as lease,
    null::timestamptz as locked_at, null::timestamptz as heartbeat_at, null::timestamptz as lease_expires_at,
    created_at, null::timestamptz as started_at, null::timestamptz as completed_at, created_at as updated_at,
    error, null::jsonb as result, usage, backoff, trace, line
  from ready where code = 2
  union all
  select id, tenant, queue, kind, payload, priority, 'queued', attempt, max_attempts, losses, max_losses,
    due, null, null, null, null, null, null, created_at, null, null, coalesce(ended_at, created_at),
    error, null, usage, backoff, trace, line
  from ready where code = 0
  union all
  select id, tenant, queue, kind, payload, priority, 'retryable', attempt, max_attempts, losses, max_losses,
    due, due, null, null, null, null, null, created_at, null, null, coalesce(ended_at, created_at),
    error, null, usage, backoff, trace, line
  from ready where code = 1
  union all
  select id, tenant, queue, kind, payload, priority, 'running', attempt, max_attempts, losses, max_losses,
    run_at, null, worker, no, claimed_at, renewed_at, expires_at, created_at, claimed_at, null, renewed_at,
    null, null, null, backoff, trace, line
  from held
  union all
  select id, tenant, queue, kind, payload, priority, 'succeeded', attempt, max_attempts, losses, max_losses,
    run_at, null, null, null, null, null, null, created_at, started_at, ended_at, ended_at,
    error, result, usage, backoff, trace, line
  from ended where how = 1
  union all
  select id, tenant, queue, kind, payload, priority, 'failed', attempt, max_attempts, losses, max_losses,
    run_at, null, null, null, null, null, null, created_at, started_at, ended_at, ended_at,
    error, result, usage, backoff, trace, line
  from ended where how = 3
  union all
  select id, tenant, queue, kind, payload, priority, 'dead', attempt, max_attempts, losses, max_losses,
    run_at, null, null, null, null, null, null, created_at, started_at, ended_at, ended_at,
    error, result, usage, backoff, trace, line
  from ended where how = 4
  union all
  select id, tenant, queue, kind, payload, priority, 'canceled', attempt, max_attempts, losses, max_losses,
    run_at, null, null, null, null, null, null, created_at, started_at, ended_at, ended_at,
    error, result, usage, backoff, trace, line
  from ended where how = 5
)
select s.id,
  coalesce(t.name, (select n.name from tenure.new_name n where n.id = s.tenant and n.what = 'tenant' limit 1)) as tenant,
  coalesce(q.name, (select n.name from tenure.new_name n where n.id = s.queue and n.what = 'queue' limit 1)) as queue,
  s.kind, s.payload, s.priority, s.state, s.attempt as attempts,
  s.max_attempts, s.losses, s.max_losses, s.due as run_at, s.next_retry_at, w.name as locked_by, s.lease, s.locked_at,
  s.heartbeat_at, s.lease_expires_at, s.created_at, s.started_at, s.completed_at, s.updated_at,
  tenure.error_message(s.error) as error_message, s.error, s.result, s.usage, s.backoff, s.trace,
  exists (select from tenure.cancel_request c where c.job = s.id) as cancel_requested,
  case when strpos(s.line, '/') > 0 then substr(s.line, strpos(s.line, '/') + 1) end as gate
from shown s
left join tenure.tenant t on t.id = s.tenant
left join tenure.queue q on q.id = s.queue
left join tenure.worker w on w.id = s.worker;

create view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;

-- Broken invariants. No rows is the only good answer; ids as in docs/ARCHITECTURE.md.
create view tenure.violations as
with held as materialized (
  select u.job, l.no, u.attempt, u.losses
  from tenure.lease l cross join lateral unnest(l.jobs, l.attempts, l.losses) u (job, attempt, losses)
  where not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
), places as (
  select job, 'ready' as place from tenure.ready
  union all select job, 'lease ' || no from held
  union all select job, 'ended under ' || lease from tenure.attempt where final
)
select case when bool_and(place like 'lease %') then 'L1' when bool_and(place like 'ended%') then 'L3' else 'L2' end as invariant,
  job, 'it is in several places: ' || string_agg(place, ', ' order by place) as detail
from places group by job having count(*) > 1
union all
select 'L2', j.id, 'it is nowhere: neither ready, nor held, nor ended' from tenure.job j
where not exists (select from places p where p.job = j.id)
union all
select 'L2', j.id, format('tenant %s of it has no name', j.tenant) from tenure.job j
where not exists (select from tenure.tenant t where t.id = j.tenant)
  and not exists (select from tenure.new_name n where n.id = j.tenant and n.what = 'tenant')
union all
select 'L2', j.id, format('queue %s of it has no name', j.queue) from tenure.job j
where not exists (select from tenure.queue q where q.id = j.queue)
  and not exists (select from tenure.new_name n where n.id = j.queue and n.what = 'queue')
union all
select 'L2', p.job, 'it is ' || p.place || ' without a job row' from places p
where not exists (select from tenure.job j where j.id = p.job)
union all
select 'L4', r.job, format('attempt %s of %s, loss %s of %s', r.attempt, j.max_attempts, r.losses, j.max_losses)
from tenure.ready r join tenure.job j on j.id = r.job
where r.attempt >= j.max_attempts and r.state <> 2 or r.losses >= j.max_losses
union all
select 'L5', h.job, format('lease %s is not above an earlier one of the job', h.no) from held h
where exists (select from tenure.attempt a where a.job = h.job and a.lease >= h.no)
union all
select 'L6', r.job, format('it waits in line `%s` of queue %s with priority %s, and asked for another', r.line, r.queue, r.priority)
from tenure.ready r join tenure.job j on j.id = r.job
where (r.queue, r.line, r.priority) <> (j.queue, j.line, j.priority)
union all
select 'G1', null, format('gate %s: %s permits, %s given back, %s live leases', g.name, g.in_use, coalesce(e.back, 0), coalesce(l.live, 0))
from tenure.gate g
left join (select gate, count(*) as back from tenure.gate_event group by gate) e on e.gate = g.id
left join (
  select u.gate, count(*) as live from tenure.lease l cross join lateral unnest(l.jobs, l.gates) u (job, gate)
  where l.gates is not null and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
  group by u.gate
) l on l.gate = g.id
where g.in_use <> coalesce(e.back, 0) + coalesce(l.live, 0)
union all
select 'G1', null, format('gate %s: what lease %s has said is below %s, where it is never heard', g.name, e.lease, g.folded_to)
from tenure.gate_event e join tenure.gate g on g.id = e.gate where e.xid < g.folded_to
union all
select 'G1', u.job, format('lease %s has passed its gate without a permit', l.no)
from tenure.lease l cross join lateral unnest(l.jobs, l.gates) u (job, gate) join tenure.job j on j.id = u.job
where strpos(j.line, '/') > 0 and u.gate is null and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
union all
select 'R1', null, format('run %s counts %s done, %s failed, %s canceled, its partitions say %s, %s, %s', r.id, r.done, r.failed, r.canceled, p.done, p.failed, p.canceled)
from tenure.run r join (
  select run, count(*) filter (where state = 2) as done, count(*) filter (where state = 3) as failed, count(*) filter (where state = 4) as canceled
  from tenure.partition group by run
) p on p.run = r.id
where r.done < p.done or r.failed < p.failed or r.canceled < p.canceled or r.done + r.failed + r.canceled > r.total + coalesce(
  (select sum(e.members) from tenure.run_event e where e.told = 0 and e.part = r.id::text), 0)
union all
select 'R2', r.consolidate, format('run %s was consolidated, and its partition %s is not done', r.id, p.name)
from tenure.run r join tenure.partition p on p.run = r.id
where r.fan in (3, 11) and p.state in (0, 1)
union all
select 'R3', null, format('run %s has heard what is below %s, where it is never heard', left(e.part, 36), f.folded_to)
from tenure.run_event e cross join tenure.run_fold f where e.xid < f.folded_to;
