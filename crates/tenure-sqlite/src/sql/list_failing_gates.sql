-- list_failing_gates.sql: gates whose jobs did not succeed, the worst first.
-- Zero rows means that all did.
select gate_rollup.gate, sum(gate_rollup.ended), sum(gate_rollup.unhealthy)
from gate_rollup
where gate_rollup.tenant = iif(:sight is null, 0, (select tenant.id from tenant where tenant.name = :sight))
  and gate_rollup.step = :step and gate_rollup.at >= :since
group by gate_rollup.gate
having sum(gate_rollup.unhealthy) > 0
order by sum(gate_rollup.unhealthy) desc, sum(gate_rollup.ended), gate_rollup.gate
limit :limit;
