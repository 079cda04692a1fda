-- list_of_queue.sql: job ids of one queue, newest first.
-- Zero rows means that there are no more.
select job.id
from job indexed by job_of_queue
where job.queue = :queue and job.id < :before and job.id >= :from
  and (:tenant is null or job.tenant = :tenant)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by job.id desc
limit :limit;
