-- find_subject.sql: whom an event of a job concerns.
-- Zero rows means that the job is gone, or that nobody of its tenant listens.
select tenant.name, queue.name, job.kind, job_callback.url, job.trace
from job
join tenant on tenant.id = job.tenant
join queue on queue.id = job.queue
left join job_callback on job_callback.job = job.id
where job.id = :job
  and (job.kind = :delivery_kind
    or exists (select 1 from webhook_endpoint
        where webhook_endpoint.tenant = job.tenant and webhook_endpoint.disabled_at is null));
