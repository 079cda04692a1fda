-- list_runs.sql: runs, newest first, with the rows of their partitions. Zero rows: none matches.
--   $1 tenant or null for all, $2 state or null, $3 only open ones, $4 only older than this id, $5 limit, $6 only this one
select r.id, r.tenant, r.owner, r.source, r.state, r.sealed, r.fail_fast, r.tolerated, r.expired, r.total, r.done, r.failed, r.canceled, r.consolidate, r.fan,
  r.created_at, r.started_at, r.finished_at, r.deadline, r.last_error,
  coalesce((select sum(p.rows) from tenure.partition p where p.run = r.id), 0)::bigint as rows
from (
  select r.id, t.name as tenant, r.owner, r.source, r.state, r.sealed, r.fail_fast, r.tolerated, r.expired, r.total, r.done, r.failed, r.canceled, r.consolidate, r.fan,
  r.created_at, r.started_at, r.finished_at, r.deadline, tenure.json_shown(r.last_error, 65536) as last_error
  from tenure.run r join tenure.tenant t on t.id = r.tenant
  where ($1::text is null or t.name = $1) and ($2::smallint is null or r.state = $2) and (not $3::boolean or r.state in (0, 1))
    and ($4::uuid is null or r.id < $4) and ($6::uuid is null or r.id = $6)
  order by r.id desc
  limit $5::bigint
) r
order by r.id desc
