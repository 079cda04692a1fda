-- add_run_event.sql: something is said about a run that no job says.
insert into run_event (part, told, members, at) values (:part, :told, :members, :now);
