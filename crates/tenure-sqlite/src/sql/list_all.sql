-- list_all.sql: job ids in any state, newest first.
-- Zero rows means that there are no more.
select job.id
from job
where job.id < :before and job.id >= :from
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by job.id desc
limit :limit;
