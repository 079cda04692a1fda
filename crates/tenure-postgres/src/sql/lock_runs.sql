-- lock_runs.sql: runs that nobody else holds, locked. Whoever adds members holds one for key share only.
--   $1 ids, $2 limit
select r.id, t.name as tenant, r.owner, r.source, r.state, r.sealed, r.fail_fast, r.tolerated, r.expired, r.total, r.done, r.failed, r.canceled, r.consolidate, r.fan,
  r.created_at, r.started_at, r.finished_at, r.deadline, tenure.json_shown(r.last_error, 65536) as last_error, 0::bigint as rows
from tenure.run r join tenure.tenant t on t.id = r.tenant
where r.id = any ($1::uuid[])
order by r.id
limit $2::bigint
for no key update of r skip locked
