-- drop_gate_rollups.sql: delete sums of gates past their retention.
-- Zero changes means that there are none.
delete from gate_rollup
where (step, at, tenant, gate) in (
    select old.step, old.at, old.tenant, old.gate from gate_rollup as old
    where old.step = :step and old.at < :before
    limit :limit);
