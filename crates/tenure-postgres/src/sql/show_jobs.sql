-- show_jobs.sql: jobs in full, by id. An id that is missing is unknown, or out of sight.
--   $1 ids, $2 tenant or null for all
select id, tenant, queue, kind, tenure.json_shown(payload) as payload, priority, state, attempts, max_attempts, losses, max_losses, run_at, locked_by, lease,
  heartbeat_at, lease_expires_at, created_at, completed_at, tenure.json_shown(error, 65536) as error, backoff, trace, cancel_requested, gate,
  (select c.url from tenure.job_callback c where c.job = id) as callback_url,
  (select j.part from tenure.job j where j.id = shown.id) as part
from tenure.jobs shown
where id = any ($1::uuid[])
  and ($2::text is null or tenant = $2)
order by id desc
