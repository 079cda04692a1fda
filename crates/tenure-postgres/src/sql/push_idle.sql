-- push_idle.sql: a worker of this queue is idle for the next two seconds. Zero rows: somebody said so just now.
--   $1 queue
update tenure.queue set idle_until = clock_timestamp() + interval '2 s'
where name = $1::text and idle_until < clock_timestamp() + interval '1 s'
