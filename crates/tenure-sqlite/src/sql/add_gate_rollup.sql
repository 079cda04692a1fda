-- add_gate_rollup.sql: add to how attempts ended that passed a gate.
insert into gate_rollup (step, at, tenant, gate, ended, unhealthy)
values (:step, :at, :tenant, :gate, :ended, :unhealthy)
on conflict (step, at, tenant, gate)
do update set ended = gate_rollup.ended + excluded.ended, unhealthy = gate_rollup.unhealthy + excluded.unhealthy;
