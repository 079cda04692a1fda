-- list_failing_gates.sql: gates whose jobs did not succeed, the worst first. Zero rows: all did.
--   $1 tenant that sees it, $2 step, $3 since, $4 limit
select e.gate, sum(e.ended)::bigint as ended, sum(e.unhealthy)::bigint as unhealthy
from tenure.gate_rollup e
where e.tenant = case when $1::text is null then 0 else (select o.id from tenure.tenant o where o.name = $1::text) end
  and e.step = $2::smallint and e.at >= $3::timestamptz
group by e.gate
having sum(e.unhealthy) > 0
order by sum(e.unhealthy) desc, sum(e.ended), e.gate
limit $4::bigint
