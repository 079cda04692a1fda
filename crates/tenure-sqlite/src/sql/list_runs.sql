-- list_runs.sql: runs, newest first.
-- Zero rows means that none matches.
select run.state, run.sealed, run.fail_fast, run.tolerated, run.total, run.done, run.failed, run.canceled, run.fan, run.started_at,
    run.finished_at, run.last_error, run.id, tenant.name, run.owner, run.source, run.consolidate,
    (select coalesce(sum(partition.rows), 0) from partition where partition.run = run.id), run.created_at, run.deadline, run.expired
from run
join tenant on tenant.id = run.tenant
where (:state is null or run.state = :state)
  and (:open = 0 or run.state in (0, 1))
  and (:before is null or run.id < :before)
  and (:sight is null or tenant.name = :sight)
order by run.id desc
limit :limit;
