-- renew_leases.sql: push the deadline of these leases out, each by the time it was claimed with: its holder counts with that.
-- A number that is missing is unknown, not lost: somebody has it locked just now (ask again), or it is gone.
--   $1 worker, $2 lease numbers, $3 now or null for the clock
with mine as materialized (
  select l.no from tenure.lease l
  where l.no = any ($2::bigint[])
    and l.worker = $1::int
  order by l.no for no key update skip locked
), renewed as (
  update tenure.lease l
  -- One reading of the clock for both, or a lease's time would drift with every renewal.
  -- In seconds: the difference of two times may be `1 day`, which is 23 hours where the clocks change.
  set renewed_at = at, expires_at = at + make_interval(secs => extract(epoch from l.expires_at - l.renewed_at))
  from mine m cross join coalesce($3::timestamptz, clock_timestamp()) at
  where l.no = m.no and l.no = any ($2::bigint[])
  returning l.no, l.jobs
)
-- Counted, not `not exists`: that becomes a join, and one planned beside an empty table reads all of attempt's index.
select r.no, array(select c.job from tenure.cancel_request c where c.job = any (r.jobs)
  and (select count(*) from tenure.attempt a where a.job = c.job and a.lease = r.no) = 0) as cancel_requested
from renewed r
