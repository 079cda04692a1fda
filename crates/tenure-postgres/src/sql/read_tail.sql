-- read_tail.sql: journal rows that no seal covers yet, after the last seal (columns of tenure.seal), in id order. Zero rows: no more.
-- Only rows that a seal will cover: with an id that was drawn, the era of that id, and in the present era a transaction that
-- has ended. Transactions of an ended era have all ended; their numbers mean nothing here.
--   $1 era, $2 before, $3 floor, $4 snapshot or null, $5 upto, $6 after this id, $7 limit
with here as materialized (
  select (select max(h.era) from tenure.home h) as era, pg_current_snapshot() as now,
    (select case when q.is_called then q.last_value else q.last_value - 1 end from tenure.journal_id_seq q) as drawn
)
select id, at, worker, actor, event, lease, jobs, reason, case when details is not null then tenure.json_shown(details) end as details
from (
  select id, at, worker, actor, event, lease, jobs, reason, details
  from tenure.late_rows($1::smallint, $2::text::pg_snapshot, $4::text::pg_snapshot, greatest($5::bigint, $6::bigint), $3::bigint, $7::bigint)
  union all
  select id, at, worker, actor, event, lease, jobs, reason, details
  from tenure.late_rows($1, coalesce($4, '1:1:')::pg_snapshot, case when $1 = (select era from here) then (select now from here) end, $6, greatest($3, $5), $7)
  union all
  (select j.id, j.at, j.worker, j.actor, j.event, j.lease, j.jobs, j.reason, j.details
   from tenure.journal j
   where j.id > greatest($3, $5, $6) and j.id <= (select drawn from here)
     and j.era = (select max(h.era) from tenure.home h where h.journal_after < j.id) and j.era >= $1
     and (j.era < (select era from here) or j.xid > '2' and pg_visible_in_snapshot(j.xid, (select now from here)))
   order by j.id limit $7)
) j
order by id
limit $7
