-- summarize_jobs.sql: jobs as lists show them, by id. No payload is read: a page of large ones would be as large as all of
-- them together. An id that is missing is unknown, or out of sight.
--   $1 ids, $2 tenant or null for all
select id, tenant, queue, kind, priority, state, attempts, max_attempts, run_at, locked_by, created_at, completed_at,
  tenure.json_shown(error, 65536) as error, gate
from tenure.jobs
where id = any ($1::uuid[])
  and ($2::text is null or tenant = $2)
order by id desc
