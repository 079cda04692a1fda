-- list_unsuccessful.sql: ids of failed, of dead or of canceled jobs, newest first.
-- Zero rows means that there are no more.
select attempt.job
from attempt indexed by attempt_unsuccessful
cross join job on job.id = attempt.job
where attempt.final = 1 and attempt.how <> 1 and attempt.how = :code and attempt.job < :before and attempt.job >= :from
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by attempt.job desc
limit :limit;
