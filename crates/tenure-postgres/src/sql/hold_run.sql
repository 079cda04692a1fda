-- hold_run.sql: one run, locked against everybody, once those who add to it are done. Zero rows: it is unknown, or out of sight.
--   $1 id, $2 tenant or null for all
select r.id, t.name as tenant, r.owner, r.source, r.state, r.sealed, r.fail_fast, r.tolerated, r.expired, r.total, r.done, r.failed, r.canceled, r.consolidate, r.fan,
  r.created_at, r.started_at, r.finished_at, r.deadline, tenure.json_shown(r.last_error, 65536) as last_error, 0::bigint as rows
from tenure.run r join tenure.tenant t on t.id = r.tenant
where r.id = $1::uuid and ($2::text is null or t.name = $2)
for update of r
