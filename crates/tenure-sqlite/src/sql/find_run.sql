-- find_run.sql: one run.
-- Zero rows means that there is no such run, or that it is out of the caller's sight.
select run.state, run.sealed, run.fail_fast, run.tolerated, run.total, run.done, run.failed, run.canceled, run.fan, run.started_at,
    run.finished_at, run.last_error, run.id, tenant.name, run.owner, run.source, run.consolidate,
    (select coalesce(sum(partition.rows), 0) from partition where partition.run = run.id), run.created_at, run.deadline, run.expired
from run
join tenant on tenant.id = run.tenant
where run.id = :run
  and (:sight is null or tenant.name = :sight);
