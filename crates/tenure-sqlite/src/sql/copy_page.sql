-- copy_page.sql: the job of a page, made after that of another page of its partition. Answers where it waits.
-- Zero rows: the id is in use, or there is no job to make it after.
insert into job (
    id, tenant, queue, line, kind, priority, payload, max_attempts, max_losses, backoff, trace, part, run_at, created_at)
select :id, job.tenant, job.queue, job.line, job.kind, job.priority, job.payload, job.max_attempts, job.max_losses,
    job.backoff, job.trace, :part, :now, :now
from job
where job.id = :job
on conflict (id) do nothing
returning queue, line, priority;
