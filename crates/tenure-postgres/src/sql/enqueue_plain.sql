-- enqueue_plain.sql: store jobs that have no keys, all or none, in one plan. One row: they are stored.
-- Zero rows: nothing is stored, and enqueue_jobs.sql says what to do, because a queue or a tenant is new, one of them has
-- a quota, a queue gets its first job with a gate, or an id is not of these days. An id that is taken raises 23505, and enqueue_jobs.sql tells which job it stands for.
--   $1 … $13 columns, $14 now or null for the clock, $15 gates (null: no job has one), $16 KiB of payloads
--
-- Ids of version 7 sort by their time, so two of them bound the days around now. The rows are sorted, and a ready row
-- comes after its job row, as in tenure.enqueue_rows: two sends of one batch must not wait for each other, and nobody
-- shall wait for the ready row of a job that is only being repeated. What due and waiting mean is told there as well.
with moment as materialized (
  select at, (lpad(to_hex(greatest(ms - 86000000, 0)), 12, '0') || repeat('0', 20))::uuid as first, (lpad(to_hex(ms + 86000000), 12, '0') || repeat('0', 20))::uuid as last
  from coalesce($14::timestamptz, clock_timestamp()) at cross join lateral cast(extract(epoch from at) * 1000 as bigint) ms
), input as materialized (
  select i.id, m.at, greatest(coalesce(i.run_at, m.at + coalesce(i.delay_ms, 0) * interval '1 ms'), m.at) as run_at, i.waiting,
    t.id as tenant, q.id as queue, case when q.fair then t.id::text else '' end || coalesce('/' || i.gate, '') as line, i.priority, i.max_attempts, i.max_losses, i.kind, i.backoff, i.trace, i.kib, i.payload
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::timestamptz[], $8::bigint[], $9::boolean[],
      $10::smallint[], $11::smallint[], $12::text[], $13::text[], $15::text[], $16::smallint[])
    i (id, tenant, queue, kind, payload, priority, run_at, delay_ms, waiting, max_attempts, max_losses, backoff, trace, gate, kib)
  join tenure.queue q on q.name = i.queue and q.quota is null and (q.lined or i.gate is null)
  join tenure.tenant t on t.name = i.tenant and (t.quota is null or not q.fair)
  join moment m on i.id > m.first and i.id < m.last
  order by i.id
), whole as materialized (
  select from input having count(*) = cardinality($1)
), stored as (
  insert into tenure.job (id, created_at, run_at, tenant, queue, line, priority, max_attempts, max_losses, kind, backoff, trace, kib, payload)
  select i.id, i.at, i.run_at, i.tenant, i.queue, i.line, i.priority, i.max_attempts, i.max_losses, i.kind, i.backoff, i.trace, i.kib, i.payload::jsonb
  from input i where exists (select from whole)
  returning id, run_at, queue, line, priority, kib
), readied as (
  insert into tenure.ready (run_at, job, queue, line, priority, state, kib)
  select case when s.waits then 'infinity' else s.run_at end, s.id, s.queue, s.line, s.priority, case when s.waits then 2 else 0 end, s.kib
  from (select id, run_at, queue, line, priority, kib, id = any (array(select id from input where waiting)) as waits from stored) s
)
select from whole
