-- list_of_kind.sql: job ids of one kind, newest first.
-- Zero rows means that there are no more.
select job.id
from job indexed by job_of_kind
where job.kind = :kind and job.id < :before and job.id >= :from
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and job.created_at >= :since and job.created_at < :until
order by job.id desc
limit :limit;
