-- list_failing_gates.sql: gates whose jobs did not succeed, the worst first. Zero rows: all did.
--   $1 tenant that sees it, $2 step, $3 since, $4 limit
--
-- One of the two branches is never begun, as in list_rollups.sql.
select r.gate, sum(r.ended)::bigint as ended, sum(r.unhealthy)::bigint as unhealthy
from (
  select * from tenure.gate_rollup e where $1::text is null and e.step = $2::smallint and e.at >= $3::timestamptz
  union all
  select * from tenure.gate_rollup e
  where $1::text is not null and e.tenant = (select o.id from tenure.tenant o where o.name = $1::text) and e.step = $2::smallint and e.at >= $3::timestamptz
) r
group by r.gate
having sum(r.unhealthy) > 0
order by sum(r.unhealthy) desc, sum(r.ended), r.gate
limit $4::bigint
