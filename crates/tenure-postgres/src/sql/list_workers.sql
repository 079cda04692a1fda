-- list_workers.sql: workers, or one, last seen first; those that never beat come last, the newest first. Zero rows: there are none.
--   $1 limit, $2 one worker
select id, name, registered_at, seen_at, state, running, reporting, version, host, pid, queues, slots, told
from tenure.worker
where $2::int is null or id = $2::int
order by seen_at desc nulls last, id desc
limit $1::bigint
