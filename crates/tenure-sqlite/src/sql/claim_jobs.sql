-- claim_jobs.sql: the due jobs of one queue, line and priority, oldest first; the caller asks for one priority after the
-- other. Each is its own range of the primary key: what lies in the future is never walked over.
-- Zero rows means that nothing of this priority is due.
select ready.job, ready.run_at, ready.attempt, ready.losses, tenant.name, job.kind, job.payload, job.max_attempts,
    job.max_losses, job.backoff, job.trace, job.created_at, job.line,
    exists (select 1 from cancel_request where cancel_request.job = ready.job), job.part
from ready
cross join job on job.id = ready.job
cross join tenant on tenant.id = job.tenant
where ready.queue = :queue
  and ready.line = :line
  and ready.priority = :priority
  and ready.run_at <= :now
  and ready.state <> 0
order by ready.run_at, ready.job
limit :limit;
