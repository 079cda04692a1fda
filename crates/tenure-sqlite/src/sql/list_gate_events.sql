-- list_gate_events.sql: what was reported of a gate and not folded yet, in order.
-- Zero rows means that all of it is in the gate's own row.
select gate_event.lease, gate_event.at, gate_event.health, gate_event.hold_until
from gate_event
where gate_event.gate = :gate
order by gate_event.id;
