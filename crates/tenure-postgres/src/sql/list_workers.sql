-- list_workers.sql: workers, last seen first; those that never beat come last, the newest first. Zero rows: there are none.
--   $1 limit
select id, name, registered_at, seen_at, state, running, reporting, version, host, pid, queues, slots
from tenure.worker
order by seen_at desc nulls last, id desc
limit $1::bigint
