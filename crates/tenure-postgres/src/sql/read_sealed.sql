-- read_sealed.sql: journal rows visible in one snapshot and not in the one before, in id order. Zero rows: no more.
--   $1 era, $2 snapshot before, $3 snapshot, $4 after this id, $5 limit
select id, at, worker, actor, event, lease, jobs, reason, case when details is not null then tenure.json_shown(details) end as details
from (
  select * from tenure.journal
  where xid >= pg_snapshot_xmax($2::text::pg_snapshot) and xid < pg_snapshot_xmax($3::text::pg_snapshot)
  union all
  select * from tenure.journal where xid = any (array(select pg_snapshot_xip($2::text::pg_snapshot)))
) j
where era = $1::smallint and pg_visible_in_snapshot(xid, $3::text::pg_snapshot) and id > $4::bigint
order by id
limit $5::bigint
