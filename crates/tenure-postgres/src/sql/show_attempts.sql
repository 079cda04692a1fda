-- show_attempts.sql: ended attempts of one job, oldest first. Zero rows: it has none yet.
--   $1 job
select a.lease, a.attempt, a.how, w.name as worker, a.started_at, a.ended_at, tenure.json_shown(a.error, 65536) as error,
  tenure.json_shown(a.result) as result, tenure.json_shown(a.usage, 65536) as usage
from tenure.attempt a
left join tenure.worker w on w.id = a.worker
where a.job = $1::uuid
order by a.lease
