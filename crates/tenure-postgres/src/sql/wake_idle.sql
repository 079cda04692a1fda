-- wake_idle.sql: notify the queues that have an idle worker; sent after the commit that brought the work.
--   $1 queues
select pg_notify('tenure', name) from tenure.queue where name = any ($1::text[]) and idle_until > clock_timestamp()
