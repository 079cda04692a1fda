-- refuses_requeue.sql: whether the run of a job was canceled, or has skipped this very job, its consolidate.
-- Zero rows: it is part of none, or its run lets it be revived.
select run.state = 4
from job
join run on run.id = unhex(substr(job.part, 1, 36), '-')
where job.id = :job and job.part is not null and (run.state = 4 or run.fan = 2 and run.consolidate = job.id);
