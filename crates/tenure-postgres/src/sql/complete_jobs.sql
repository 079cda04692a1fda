-- complete_jobs.sql: end attempts of any leases of one worker as succeeded, and drop each lease that this empties.
-- Rows are the attempts that were not ended now: their lease moved on; refuse_endings.sql tells. When one has ended
-- before, this raises 23505 and writes nothing. Then it is tried lease by lease, and end_jobs.sql writes what is left of
-- the one that raises again. That is rare, and `on conflict`, which looks first, would cost every job.
--   $1 worker, $2 the leases, then for each attempt: $3 lease, $4 job, $5 result, $6 usage (null: nobody has one);
--   $7 now or null for the clock
--
-- The key (job, lease) decides who ends an attempt. The leases are held for key share, so that they stay until this is
-- done: a report that was slow would otherwise end a job anew whose lease has gone and which was pruned meanwhile.
-- Dropping skips a lease that somebody has locked; waiting there, for one who waits for these very keys, would be a deadlock.
-- The clock is read once: a later time in each row would widen the summary of attempt_ended row by row.
with moment as materialized (
  select coalesce($7::timestamptz, clock_timestamp()) as at
), held as materialized (
  select l.no, l.queue, u.job, u.attempt, u.losses, u.gate, l.claimed_at
  from (
    select l.no, l.queue, l.claimed_at, l.jobs, l.attempts, l.losses, l.gates from tenure.lease l
    where l.no = any ($2::bigint[])
      and l.worker = $1::int
    for key share
  ) l cross join lateral unnest(l.jobs, l.attempts, l.losses, l.gates) u (job, attempt, losses, gate)
), ended as (
  insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final, result, usage)
  select h.job, h.no, h.claimed_at, (select at from moment), $1::int, h.attempt, h.losses, 1, true, i.result::jsonb, i.usage::jsonb
  from unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[]) i (lease, job, result, usage)
  join held h on h.job = i.job and h.no = i.lease
  order by h.job
  returning job, lease
), left_gate as (
  -- Each gives its permit back, and the resource did well.
  insert into tenure.gate_event (gate, lease, at, health)
  select h.gate, e.lease, (select at from moment), 1 from ended e join held h on h.job = e.job and h.no = e.lease and h.gate is not null
  where exists (select from held where gate is not null)
), told as (
  -- Those of runs say so; in a queue that never had one nobody looks.
  insert into tenure.run_event (part, job, told, at)
  select j.part, e.job, 1, (select at from moment) from ended e
  cross join lateral (select j.part from tenure.job j where j.id = e.job offset 0) j
  where j.part is not null and exists (select from tenure.queue q where q.parted and q.id = any (array(select queue from held)))
    and (strpos(j.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
), used as (
  -- What they used is added up later; where nobody says so nobody looks.
  insert into tenure.usage_event (at, tenant, kind, usage)
  select (select at from moment), j.tenant, j.kind, i.usage::jsonb
  from unnest($3::bigint[], $4::uuid[], $6::text[]) i (lease, job, usage)
  join ended e on e.job = i.job and e.lease = i.lease
  cross join lateral (select j.tenant, j.kind from tenure.job j where j.id = e.job offset 0) j
  where $6::text[] is not null and i.usage is not null
), emptied as materialized (
  select lease, array_agg(job) as jobs from ended group by lease
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs)
  select (select at from moment), $1::int, 11, lease, jobs from emptied
), dropped as (
  delete from tenure.lease d
  where d.no = any (array(
    select l.no from emptied e join tenure.lease l on l.no = e.lease and cardinality(e.jobs) = cardinality(l.attempts)
    for update of l skip locked
  ))
)
select i.lease, i.job from unnest($3::bigint[], $4::uuid[]) i (lease, job)
where (select count(*) from ended) < cardinality($4) and (i.job, i.lease) not in (select job, lease from ended)
