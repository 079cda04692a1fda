-- list_running.sql: ids of running jobs not renewed since :renewed_before, newest first. Leases are few.
-- Zero rows means that there are no more.
select job.id
from lease
cross join json_each(lease.jobs) as listed
cross join job on job.id = unhex(listed.value, '-')
where coalesce(lease.renewed_at, lease.claimed_at) <= :renewed_before
  and job.id < :before and job.id >= :from
  and not exists (
    select 1 from attempt where attempt.job = job.id and attempt.lease = lease.no)
  and (:tenant is null or job.tenant = :tenant)
  and (:queue is null or job.queue = :queue)
  and (:kind is null or job.kind = :kind)
  and job.created_at >= :since and job.created_at < :until
order by job.id desc
limit :limit;
