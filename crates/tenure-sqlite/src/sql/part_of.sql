-- part_of.sql: what a job is of its run.
-- Zero rows: it is part of none, or there is no such job.
select job.part from job where job.id = :job and job.part is not null;
