-- read_tail.sql: journal rows of an era that no seal up to this snapshot covers, in id order. Zero rows: no more.
--   $1 era, $2 last snapshot, $3 after this id, $4 limit
select id, at, worker, actor, event, lease, jobs, reason, case when details is not null then tenure.json_shown(details) end as details
from (
  select * from tenure.journal where xid >= pg_snapshot_xmax($2::text::pg_snapshot)
  union all
  select * from tenure.journal where xid = any (array(select pg_snapshot_xip($2::text::pg_snapshot)))
) j
where era = $1::smallint and id > $3::bigint
order by id
limit $4::bigint
