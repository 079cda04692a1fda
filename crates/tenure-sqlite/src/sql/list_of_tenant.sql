-- list_of_tenant.sql: job ids of one tenant, newest first.
-- Zero rows means that there are no more.
select job.id
from job indexed by job_of_tenant
where job.tenant = :tenant and job.id < :before and job.id >= :from
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by job.id desc
limit :limit;
