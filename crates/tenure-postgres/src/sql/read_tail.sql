-- read_tail.sql: journal rows that no seal covers, after the last seal (columns of tenure.seal), in id order. Zero rows: no more.
--   $1 era, $2 before, $3 floor, $4 snapshot or null, $5 upto, $6 after this id, $7 limit
select id, at, worker, actor, event, lease, jobs, reason, case when details is not null then tenure.json_shown(details) end as details
from (
  select id, at, worker, actor, event, lease, jobs, reason, details
  from tenure.late_rows($1::smallint, $2::text::pg_snapshot, $4::text::pg_snapshot, greatest($5::bigint, $6::bigint), $3::bigint, $7::bigint)
  union all
  select id, at, worker, actor, event, lease, jobs, reason, details
  from tenure.late_rows($1, coalesce($4, '1:1:')::pg_snapshot, pg_current_snapshot(), $6, greatest($3, $5), $7)
  union all
  (select id, at, worker, actor, event, lease, jobs, reason, details
   from tenure.journal where id > greatest($3, $5, $6) order by id limit $7)
) j
order by id
limit $7
