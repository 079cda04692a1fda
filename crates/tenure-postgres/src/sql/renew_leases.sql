-- renew_leases.sql: push the deadline of these leases out by their queue's lease time.
-- A number that is missing is unknown, not lost: somebody has it locked just now (ask again), or it is gone.
--   $1 worker, $2 lease numbers, $3 now or null for the clock
with mine as materialized (
  select l.no, l.queue from tenure.lease l
  where l.no = any ($2::bigint[])
    and l.worker = $1::int
  order by l.no for no key update skip locked
), renewed as (
  update tenure.lease l
  set renewed_at = coalesce($3::timestamptz, clock_timestamp()),
    expires_at = coalesce($3::timestamptz, clock_timestamp()) + q.lease_ttl_ms * interval '1 ms'
  from mine m join tenure.queue q on q.id = m.queue
  where l.no = m.no and l.no = any ($2::bigint[])
  returning l.no, l.jobs
)
-- Counted, not `not exists`: that becomes a join, and one planned beside an empty table reads all of attempt's index.
select r.no, array(select c.job from tenure.cancel_request c where c.job = any (r.jobs)
  and (select count(*) from tenure.attempt a where a.job = c.job and a.lease = r.no) = 0) as cancel_requested
from renewed r
