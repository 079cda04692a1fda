-- claim_jobs.sql: take due jobs of one queue under one new lease.
-- Zero rows: nothing is due, or the queue is paused or unknown. Rows with `canceled` were ended, not handed out. A row
-- without a job: the queue has lines, and tenure.claim_lines takes from those.
--   $1 worker, $2 queue, $3 limit, $4 and $5 floors (run_at, job) of the four priorities, $6 now or null for the clock,
--   $7 the priorities in the order they are looked at, $8 KiB of payloads after which no further job is taken,
--   $9 read payloads one by one and give null for one that is too long for any text
--
-- Each priority is a range of its own that begins at its floor, so neither the future, nor lower priorities, nor rows
-- deleted under somebody's old snapshot are walked. A floor above the clock (it went back) counts as unset.
-- Candidates are locked in a materialized CTE and deleted by place: a plain `in (select … limit)` may run more than once
-- and take more than its limit. Arrays keep every join small under a generic plan, whatever the statistics say: they are planned for ten rows.
with q as materialized (
  select id, lease_ttl_ms, lined, coalesce($6::timestamptz, statement_timestamp()) as due from tenure.queue
  where name = $2::text
    and not paused
), due as materialized (
  -- A lateral is a nested loop under every plan: the priorities are looked at one after the other, and no further than
  -- the limit. An `order by` out here would lock the limit of each of them first.
  select r.place, r.kib
  from q cross join unnest($7::smallint[]) p (priority)
  cross join lateral (
    select r.ctid as place, r.kib from tenure.ready r
    where not q.lined and r.queue = q.id and r.line = '' and r.priority = p.priority and r.run_at <= q.due
      and (r.run_at, r.job) >= (case when ($4::timestamptz[])[p.priority + 1] <= q.due then ($4)[p.priority + 1] else '-infinity' end, ($5::uuid[])[p.priority + 1])
    order by r.queue, r.line, r.priority, r.run_at, r.job
    limit $3::bigint for update skip locked
  ) r
  limit $3::bigint
), fit as materialized (
  -- In the order of the claim: a job is taken while those before it are below the bound. Only read where all together are
  -- above it: a running sum costs more than a sum.
  select place, sum(kib) over (rows unbounded preceding) - kib < $8::bigint as fits from due
), taken as (
  delete from tenure.ready r
  where r.ctid = any (case when (select sum(kib) from due) <= $8::bigint then array(select place from due) else array(select place from fit where fits) end)
  returning r.job, r.attempt, r.losses, r.run_at
), doomed as materialized (
  -- A cancel request and a retry may pass each other; here they meet again. Usually there is none at all.
  select c.job from tenure.cancel_request c where c.job = any (array(select job from taken))
    and exists (select from tenure.cancel_request)
), kept as materialized (
  select t.job, (t.attempt + 1)::smallint as attempt, t.losses, t.run_at from taken t
  where t.job <> all (array(select job from doomed))
  order by t.job
), usual as materialized (
  -- Most claims are of one tenant: its name is looked up once.
  select t.id, t.name from tenure.tenant t where t.id = (select j.tenant from tenure.job j where j.id = (select job from kept limit 1))
), granted as (
  -- The number is drawn here, after the ready rows are deleted: a fence only ever grows.
  insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses)
  select q.id, $1::int, at, at, at + q.lease_ttl_ms * interval '1 ms', k.jobs, k.attempts, k.losses
  from (select array_agg(job) as jobs, array_agg(attempt) as attempts, array_agg(losses) as losses from kept) k
  cross join q cross join coalesce($6::timestamptz, clock_timestamp()) at
  where k.jobs is not null
  returning no, jobs, claimed_at
), drawn as materialized (
  select tenure.draw_lease_no() as no from doomed limit 1
), ended as (
  insert into tenure.attempt (job, lease, ended_at, attempt, losses, how, final)
  select t.job, d.no, coalesce($6::timestamptz, clock_timestamp()), t.attempt, t.losses, 5, true
  from taken t cross join drawn d where t.job = any (array(select job from doomed))
  order by t.job
  returning job, lease
), told as (
  insert into tenure.run_event (part, job, told, at)
  select j.part, e.job, 5, coalesce($6::timestamptz, clock_timestamp()) from ended e cross join lateral (select j.part from tenure.job j where j.id = e.job offset 0) j
  where j.part is not null and (strpos(j.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs)
  select g.claimed_at, $1::int, 1, g.no, g.jobs from granted g
  union all
  select coalesce($6::timestamptz, clock_timestamp()), $1::int, 15, min(e.lease), array_agg(e.job) from ended e having count(*) > 0
)
select false as canceled, g.no, q.lease_ttl_ms, q.due, k.job, k.attempt, k.losses, k.run_at, j.created_at, j.kind,
  case when $9::boolean then tenure.json_text(j.payload, 1048576) else j.payload::text end as payload,
  j.priority, j.max_attempts, j.max_losses, j.backoff, j.trace,
  case when j.tenant = u.id then u.name else (select t.name from tenure.tenant t where t.id = j.tenant) end as tenant, j.part
from kept k
cross join granted g
cross join q
join tenure.job j on j.id = k.job
left join usual u on true
union all
select true, e.lease, q.lease_ttl_ms, q.due, e.job, 0::smallint, 0::smallint, null, null, null, null, null, null, null, null, null, null, null
from ended e cross join q
union all
select false, null, q.lease_ttl_ms, q.due, null, null, null, null, null, null, null, null, null, null, null, null, null, null from q where q.lined
