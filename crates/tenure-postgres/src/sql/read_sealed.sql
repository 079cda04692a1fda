-- read_sealed.sql: journal rows of one seal (columns of tenure.seal), in id order. Zero rows: no more.
--   $1 era, $2 before, $3 floor, $4 snapshot or null, $5 after this id, $6 upto, $7 limit
with late as materialized (
  select id, at, worker, actor, event, lease, jobs, reason, details, xid
  from tenure.late_rows($1::smallint, $2::text::pg_snapshot, $4::text::pg_snapshot, $5::bigint, least($3::bigint, $6::bigint), $7::bigint)
)
select id, at, worker, actor, event, lease, jobs, reason, case when details is not null then tenure.json_shown(details) end as details
from (
  select id, at, worker, actor, event, lease, jobs, reason, details, xid from late
  union all
  (select id, at, worker, actor, event, lease, jobs, reason, details, xid from tenure.journal
   where id > greatest($3, $5) and id <= $6 and era = $1 and xid > '2' and ($4 is null or pg_visible_in_snapshot(xid, $4::pg_snapshot))
   order by id limit $7 - (select count(*) from late))
) j
order by id
