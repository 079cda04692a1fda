-- find_gate.sql: where a gate stands, but for the events that nobody has folded yet.
-- Zero rows means that no job has passed it and nobody has touched it.
select gate.id, gate.name, gate.in_use, gate.full_at, gate.streak, gate.open_until, gate.probe, gate.deaf_to, gate.newest,
    gate.paused_until, gate.held_until, gate.succeeded_at, gate.failed_at, gate.pause_reason, gate.trip_reason
from gate
where gate.name = :name;
