-- list_succeeded.sql: ids of succeeded jobs, newest first. Most ended jobs are, so the primary key does; the
-- plus signs keep the planner from sorting another index.
-- Zero rows means that there are no more.
select attempt.job
from attempt
cross join job on job.id = attempt.job
where attempt.job < :before and attempt.job >= :from and +attempt.final = 1 and +attempt.how = :code
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by attempt.job desc
limit :limit;
