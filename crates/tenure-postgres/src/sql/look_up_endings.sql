-- look_up_endings.sql: how attempts under one lease ended.
-- A job that is missing has no attempt under this lease: the grant is unknown, or never was this worker's.
--   $1 worker, $2 lease, $3 jobs
select a.job, a.how
from tenure.attempt a
where a.job = any ($3::uuid[])
  and a.lease = $2::bigint
  and (a.worker = $1::int or a.worker is null)
