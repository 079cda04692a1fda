-- list_run_events.sql: what was said of runs, in order.
-- Zero rows: nothing was.
select run_event.id, run_event.part, run_event.job, run_event.told, run_event.members, run_event.at, run_event.error
from run_event
order by run_event.id
limit :limit;
