-- end_jobs.sql: end attempts of one lease, each its own way, and put back what is to be tried again.
-- Rows are the attempts ended now and how. A job that is missing ended before, or its lease moved on: refuse_endings.sql tells.
--   $1 worker, $2 lease, $3 jobs, $4 hows, $5 delays in ms, $6 errors, $7 results, $8 usages, $9 now or null for the clock,
--   $10 how the resources behind their gates did, $11 for how many ms those want silence
--
-- What follows an ending comes from what was really inserted, never from the input: two reports of one grant would
-- otherwise put a job back twice. The lease is held as in complete_jobs.sql. A requested cancel wins over putting back; a retry without attempts left is dead.
-- The clock of endings is read once: a later time in each row would widen the summary of attempt_ended row by row. That of
-- rows put back is read when they are: endings may have waited for somebody, and nothing is to land below a floor.
with moment as materialized (
  select coalesce($9::timestamptz, clock_timestamp()) as at
), held as materialized (
  select u.job, u.attempt, u.losses, u.gate, l.claimed_at
  from (
    select l.claimed_at, l.jobs, l.attempts, l.losses, l.gates from tenure.lease l
    where l.no = $2::bigint
      and l.worker = $1::int
    for key share
  ) l cross join lateral unnest(l.jobs, l.attempts, l.losses, l.gates) u (job, attempt, losses, gate)
), decided as materialized (
  select h.job, h.attempt, h.losses, h.gate, h.claimed_at, i.delay_ms, i.error, i.result, i.usage, i.health, i.hold_ms, j.tenant, j.kind, j.queue, j.line, j.priority, j.part, j.kib,
    (case when i.how = 2 and h.attempt >= j.max_attempts then 4
          when i.how in (2, 6, 7) and exists (select from tenure.cancel_request c where c.job = h.job) then 5
          else i.how end)::smallint as how
  from unnest($3::uuid[], $4::smallint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $10::smallint[], $11::bigint[])
    i (job, how, delay_ms, error, result, usage, health, hold_ms)
  join held h on h.job = i.job
  join tenure.job j on j.id = h.job and j.id = any ($3::uuid[])
), ended as (
  insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final, error, result, usage)
  select d.job, $2::bigint, d.claimed_at, (select at from moment), $1::int, d.attempt, d.losses, d.how, d.how in (1, 3, 4, 5),
    d.error::jsonb, d.result::jsonb, d.usage::jsonb
  from decided d
  order by d.job
  on conflict do nothing
  returning job, how
), again as (
  insert into tenure.ready (run_at, job, queue, line, priority, attempt, losses, state, kib)
  select coalesce($9::timestamptz, clock_timestamp()) + d.delay_ms * interval '1 ms', d.job, d.queue, d.line, d.priority,
    case when e.how = 2 then d.attempt else d.attempt - 1 end, d.losses, case when e.how = 2 then 1 else 0 end, d.kib
  from ended e join decided d on d.job = e.job
  where e.how in (2, 6, 7)
), left_gate as (
  insert into tenure.gate_event (gate, lease, at, health, hold_until)
  select d.gate, $2::bigint, m.at, d.health, m.at + d.hold_ms * interval '1 ms'
  from moment m cross join ended e join decided d on d.job = e.job where d.gate is not null
), used as (
  insert into tenure.usage_event (at, tenant, kind, usage)
  select m.at, d.tenant, d.kind, d.usage::jsonb from moment m cross join ended e join decided d on d.job = e.job
  where e.how = 1 and d.usage is not null
), told as (
  insert into tenure.run_event (part, job, told, at, error)
  select d.part, e.job, e.how, m.at, d.error::jsonb from moment m cross join ended e join decided d on d.job = e.job
  where d.part is not null and e.how in (1, 3, 4, 5) and (strpos(d.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs)
  select (select at from moment), $1::int, 10 + e.how, $2::bigint, array_agg(e.job) from ended e group by e.how
), dropped as (
  delete from tenure.lease d
  where d.no = (select l.no from tenure.lease l where l.no = $2::bigint and (select count(*) from ended) = cardinality(l.attempts) for update skip locked)
)
select job, how from ended
