-- list_unsuccessful.sql: ids of failed, of dead or of canceled jobs, newest first.
-- Zero rows means that there are no more.
select attempt.job
from attempt indexed by attempt_unsuccessful
cross join job on job.id = attempt.job
where attempt.final = 1 and attempt.how <> 1 and attempt.how = :code and attempt.job < :before
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
order by attempt.job desc
limit :limit;
