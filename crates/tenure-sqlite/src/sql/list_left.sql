-- list_left.sql: jobs of a run that have not ended and that nobody asked to stop.
-- Zero rows: nothing is left of it. For the plus see find_job.sql.
select job.id
from job
where job.part >= :run and job.part < :run || '~'
  and not exists (select 1 from attempt where attempt.job = job.id and +attempt.final = 1)
  and not exists (select 1 from cancel_request where cancel_request.job = job.id)
limit :limit;
