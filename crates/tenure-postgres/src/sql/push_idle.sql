-- push_idle.sql: a worker of this queue is idle for the next two seconds. Zero rows: it was noted
-- a moment ago, or another transaction has the queue's row locked.
--   $1 queue
with q as materialized (
  select id from tenure.queue where name = $1::text and idle_until < clock_timestamp() + interval '1 s' for no key update skip locked
)
update tenure.queue u set idle_until = clock_timestamp() + interval '2 s' from q where u.id = q.id
