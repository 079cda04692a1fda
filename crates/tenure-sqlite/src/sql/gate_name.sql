-- gate_name.sql: the gate of this number.
-- Zero rows cannot be: gates are never deleted.
select gate.name from gate where gate.id = :gate;
