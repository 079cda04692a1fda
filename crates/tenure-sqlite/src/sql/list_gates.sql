-- list_gates.sql: gates by name, one page.
-- Zero rows means that there are no (more) gates that match.
select gate.id, gate.name, gate.in_use, gate.full_at, gate.streak, gate.open_until, gate.probe, gate.deaf_to, gate.newest,
    gate.paused_until, gate.held_until, gate.succeeded_at, gate.failed_at, gate.pause_reason, gate.trip_reason
from gate
where gate.name > :after
  and gate.name >= :first
  and gate.name < :end
order by gate.name
limit :limit;
