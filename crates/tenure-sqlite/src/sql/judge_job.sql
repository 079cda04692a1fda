-- judge_job.sql: what decides whether an unfinished job goes back into the line.
-- Zero rows means that the job is gone although a lease holds it: corrupt.
select job.line, job.priority, job.max_attempts, job.max_losses,
    exists (select 1 from cancel_request where cancel_request.job = job.id)
from job
where job.id = :job;
