-- list_fires.sql: the last fires of a schedule, the newest first, and where their jobs stand.
--   $1 schedule, $2 limit
select f.fire_at, f.job, tenure.state_of(f.job) as state
from tenure.schedule_fire f where f.schedule = $1::bigint order by f.fire_at desc limit $2::bigint
