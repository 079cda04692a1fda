-- run_in_state.sql: what a job is of a run that stands so.
-- Zero rows: it is part of none, or its run stands otherwise.
select job.part
from job
join run on run.id = unhex(substr(job.part, 1, 36), '-')
where job.id = :job and job.part is not null and run.state = :state;
