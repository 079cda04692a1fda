-- look_up_endings.sql: how attempts under one lease ended.
-- A job that is missing has no attempt under this lease: the grant is unknown, or never was this worker's.
-- The attempts were written by other transactions: the answer waits until the synchronous standbys have them.
--   $1 worker, $2 lease, $3 jobs
select a.job, a.how, tenure.await_standbys() as confirmed
from tenure.attempt a
where a.job = any ($3::uuid[])
  and a.lease = $2::bigint
  and (a.worker = $1::int or a.worker is null)
