-- read_run_events.sql: what was said of runs and is not folded, in order, and the oldest transaction that was open then.
--   $1 limit, $2 ids of runs to leave out, as text: a part begins with its run's
select e.id, e.part, e.job, e.told, e.members, e.at, e.error::text as error, pg_snapshot_xmin(pg_current_snapshot())::text as floor
from (select e.id, e.part, e.job, e.told, e.members, e.at, e.error from tenure.run_event e where e.xid >= (select f.folded_to from tenure.run_fold f) offset 0) e
where left(e.part, 36) <> all ($2::text[])
order by e.id
limit $1::bigint
