-- claim_jobs.sql: take due jobs of one queue under one new lease, most urgent first.
-- Zero rows: nothing is due, or the queue is paused or unknown. Rows with `canceled` were ended, not handed out.
--   $1 worker, $2 queue, $3 limit, $4 and $5 floors (run_at, job) of the four priorities, $6 now or null for the clock
--
-- Each priority is a range of its own that begins at its floor, so neither the future, nor lower priorities, nor rows
-- deleted under somebody's old snapshot are walked. A floor above the clock (it went back) counts as unset.
-- Candidates are locked in materialized CTEs and deleted by place: a plain `in (select … limit)` may run more than once
-- and take more than its limit. Arrays keep every join small under a generic plan, whatever the statistics say: they are planned for ten rows.
with q as materialized (
  select id, lease_ttl_ms, coalesce($6::timestamptz, statement_timestamp()) as due from tenure.queue
  where name = $2::text
    and not paused
), p0 as materialized (
  select r.ctid as place from tenure.ready r
  where r.queue = (select id from q) and r.line = 0 and r.priority = 0 and r.run_at <= (select due from q)
    and (r.run_at, r.job) >= (case when ($4::timestamptz[])[1] <= (select due from q) then ($4)[1] else '-infinity' end, ($5::uuid[])[1])
  order by r.queue, r.line, r.priority, r.run_at, r.job
  limit $3::bigint for update skip locked
), p1 as materialized (
  select r.ctid as place from tenure.ready r
  where r.queue = (select id from q) and r.line = 0 and r.priority = 1 and r.run_at <= (select due from q)
    and (r.run_at, r.job) >= (case when ($4::timestamptz[])[2] <= (select due from q) then ($4)[2] else '-infinity' end, ($5::uuid[])[2])
  order by r.queue, r.line, r.priority, r.run_at, r.job
  limit $3::bigint - (select count(*) from p0) for update skip locked
), p2 as materialized (
  select r.ctid as place from tenure.ready r
  where r.queue = (select id from q) and r.line = 0 and r.priority = 2 and r.run_at <= (select due from q)
    and (r.run_at, r.job) >= (case when ($4::timestamptz[])[3] <= (select due from q) then ($4)[3] else '-infinity' end, ($5::uuid[])[3])
  order by r.queue, r.line, r.priority, r.run_at, r.job
  limit $3::bigint - (select count(*) from p0) - (select count(*) from p1) for update skip locked
), p3 as materialized (
  select r.ctid as place from tenure.ready r
  where r.queue = (select id from q) and r.line = 0 and r.priority = 3 and r.run_at <= (select due from q)
    and (r.run_at, r.job) >= (case when ($4::timestamptz[])[4] <= (select due from q) then ($4)[4] else '-infinity' end, ($5::uuid[])[4])
  order by r.queue, r.line, r.priority, r.run_at, r.job
  limit $3::bigint - (select count(*) from p0) - (select count(*) from p1) - (select count(*) from p2) for update skip locked
), taken as (
  delete from tenure.ready r
  where r.ctid = any (array(select place from p0 union all select place from p1 union all select place from p2 union all select place from p3))
  returning r.job, r.attempt, r.losses, r.run_at
), doomed as materialized (
  -- A cancel request and a retry may pass each other; here they meet again.
  select c.job from tenure.cancel_request c where c.job = any (array(select job from taken))
), kept as materialized (
  select t.job, (t.attempt + 1)::smallint as attempt, t.losses, t.run_at from taken t
  where t.job <> all (array(select job from doomed))
), granted as (
  -- The number is drawn here, after the ready rows are deleted: a fence only ever grows.
  insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses)
  select min(q.id), $1::int, min(at), min(at), min(at + q.lease_ttl_ms * interval '1 ms'),
    array_agg(k.job order by k.job), array_agg(k.attempt order by k.job), array_agg(k.losses order by k.job)
  from kept k cross join q cross join coalesce($6::timestamptz, clock_timestamp()) at
  having count(*) > 0
  returning no, jobs, claimed_at
), drawn as materialized (
  select nextval('tenure.lease_no_seq') as no from doomed limit 1
), ended as (
  insert into tenure.attempt (job, lease, ended_at, attempt, losses, how, final)
  select t.job, d.no, coalesce($6::timestamptz, clock_timestamp()), t.attempt, t.losses, 5, true
  from taken t cross join drawn d where t.job = any (array(select job from doomed))
  order by t.job
  returning job, lease
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs)
  select g.claimed_at, $1::int, 1, g.no, g.jobs from granted g
  union all
  select coalesce($6::timestamptz, clock_timestamp()), $1::int, 15, min(e.lease), array_agg(e.job) from ended e having count(*) > 0
)
select false as canceled, g.no, q.lease_ttl_ms, q.due, k.job, k.attempt, k.losses, k.run_at, j.created_at, j.kind, j.payload::text as payload,
  j.priority, j.max_attempts, j.max_losses, j.backoff, j.trace, t.name as tenant
from kept k
cross join granted g
cross join q
join tenure.job j on j.id = k.job
join tenure.tenant t on t.id = j.tenant
union all
select true, e.lease, q.lease_ttl_ms, q.due, e.job, 0::smallint, 0::smallint, null, null, null, null, null, null, null, null, null, null
from ended e cross join q
