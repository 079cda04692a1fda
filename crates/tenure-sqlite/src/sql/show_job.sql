-- show_job.sql: a job as it was asked for, and where it stands (see find_job.sql).
-- Zero rows means that there is no such job, or that it is out of the caller's sight.
select job.id, tenant.name, queue.name, job.kind, job.priority, job.max_attempts, job.run_at, job.created_at,
    ready.state, ready.attempt, ready.losses, ready.run_at, ended.how, ended.attempt, ended.losses, ended.ended_at,
    (select last.error from attempt as last where last.job = job.id order by last.lease desc limit 1),
    job.max_losses, job.backoff, job.payload, job.trace,
    exists (select 1 from cancel_request where cancel_request.job = job.id),
    case when instr(job.line, '/') > 0 then substr(job.line, instr(job.line, '/') + 1) end,
    (select job_callback.url from job_callback where job_callback.job = job.id),
    job.part
from job
join tenant on tenant.id = job.tenant
join queue on queue.id = job.queue
left join ready on ready.job = job.id
left join attempt as ended on ended.job = job.id and ended.final = 1
where job.id = :job
  and (:sight is null or tenant.name = :sight);
