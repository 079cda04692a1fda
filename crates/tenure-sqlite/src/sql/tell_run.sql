-- tell_run.sql: a job says to its run how it ended, or that it was revived.
-- Zero rows: it is part of none. A page that another one follows has nothing to say, nor one that is not its partition's.
insert into run_event (part, job, told, at, error)
select job.part, job.id, :told, :now, :error
from job
where job.id = :job and job.part is not null
  and (instr(job.part, ':') = 0 or exists (select 1 from partition where partition.job = job.id));
