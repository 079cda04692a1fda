-- add_gate.sql: a gate that a job is about to pass, or that somebody touches.
-- Zero rows means that it was there.
insert into gate (name) values (:name) on conflict (name) do nothing;
