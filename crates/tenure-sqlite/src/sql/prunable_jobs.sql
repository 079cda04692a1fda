-- prunable_jobs.sql: jobs that ended so, long ago, oldest first. A job whose lease is still there must stay, or a
-- repeated report would be accepted anew; so must one that a run may yet revive.
-- Zero rows means that retention is met.
select attempt.job, job.tenant, job.scope, job.key
from attempt indexed by attempt_ended
cross join job on job.id = attempt.job
where attempt.final = 1 and attempt.how = :how
  and attempt.ended_at <= :ended_before
  and not exists (
    select 1 from attempt as any_attempt cross join lease on lease.no = any_attempt.lease
    where any_attempt.job = attempt.job)
  and not exists (select 1 from partition where partition.job = attempt.job and partition.state <> 2)
  and not exists (select 1 from run where run.consolidate = attempt.job and run.state in (0, 1, 3))
order by attempt.ended_at
limit :limit;
