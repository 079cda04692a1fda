-- list_queued.sql: ids of queued jobs, newest first.
-- Zero rows means that there are no more.
select ready.job
from ready indexed by ready_job
cross join job on job.id = ready.job
where ready.job < :before and ready.job >= :from and ready.state = :code
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by ready.job desc
limit :limit;
