-- has_job.sql: whether there is such a job.
-- Zero rows means that it was never stored, or pruned.
select 1 from job where job.id = :job;
