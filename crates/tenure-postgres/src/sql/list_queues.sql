-- list_queues.sql: queues with what is in them, by name.
--   $1 now or null for the clock
select q.name, q.paused, q.fair, q.quota, q.lease_ttl_ms, coalesce(r.due, 0) as due, coalesce(r.scheduled, 0) as scheduled,
  coalesce(r.waiting, 0) as waiting, coalesce(r.retryable, 0) as retryable, coalesce(h.running, 0) as running,
  r.oldest_due
from tenure.queue q
left join (
  select queue, count(*) filter (where run_at <= coalesce($1::timestamptz, clock_timestamp())) as due,
    count(*) filter (where run_at > coalesce($1::timestamptz, clock_timestamp())) as scheduled,
    count(*) filter (where state = 2) as waiting, count(*) filter (where state = 1) as retryable,
    min(run_at) filter (where run_at <= coalesce($1::timestamptz, clock_timestamp())) as oldest_due
  from tenure.ready group by queue
) r on r.queue = q.id
left join (
  select l.queue, count(*) as running
  from tenure.lease l cross join lateral unnest(l.jobs) u (job)
  where not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
  group by l.queue
) h on h.queue = q.id
order by q.name
