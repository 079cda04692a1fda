-- complete_jobs.sql: end attempts of one lease as succeeded, and drop the lease when that empties it.
-- Rows are the jobs ended now. A job that is missing ended before, or its lease moved on: refuse_endings.sql tells.
--   $1 worker, $2 lease, $3 jobs, $4 results, $5 usages, $6 now or null for the clock
--
-- The key (job, lease) decides who ends an attempt. The lease is held for key share, so that it stays until this is
-- done: a report that was slow would otherwise end a job anew whose lease has gone and which was pruned meanwhile.
-- Dropping skips a lease that somebody has locked; waiting there, for one who waits for these very keys, would be a deadlock.
-- The clock is read once: a later time in each row would widen the summary of attempt_ended row by row.
with moment as materialized (
  select coalesce($6::timestamptz, clock_timestamp()) as at
), held as materialized (
  select u.job, u.attempt, u.losses, l.claimed_at
  from (
    select l.claimed_at, l.jobs, l.attempts, l.losses from tenure.lease l
    where l.no = $2::bigint
      and l.worker = $1::int
    for key share
  ) l cross join lateral unnest(l.jobs, l.attempts, l.losses) u (job, attempt, losses)
), ended as (
  insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final, result, usage)
  select h.job, $2::bigint, h.claimed_at, (select at from moment), $1::int, h.attempt, h.losses, 1, true, i.result::jsonb, i.usage::jsonb
  from unnest($3::uuid[], $4::text[], $5::text[]) i (job, result, usage)
  join held h on h.job = i.job
  order by h.job
  on conflict do nothing
  returning job
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs)
  select (select at from moment), $1::int, 11, $2::bigint, array_agg(job) from ended having count(*) > 0
), dropped as (
  delete from tenure.lease d
  where d.no = (select l.no from tenure.lease l where l.no = $2::bigint and (select count(*) from ended) = cardinality(l.attempts) for update skip locked)
)
select job from ended
