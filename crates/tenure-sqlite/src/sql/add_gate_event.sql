-- add_gate_event.sql: a job has left its gate. Numbers start again when all were folded; only their order counts.
insert into gate_event (gate, id, lease, at, health, hold_until)
select :gate, coalesce(max(gate_event.id), 0) + 1, :lease, :now, :health, :hold_until
from gate_event
where gate_event.gate = :gate;
