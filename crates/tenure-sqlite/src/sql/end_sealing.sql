-- end_sealing.sql: the time that a run had to be sealed is no deadline of the run itself.
update run set deadline = null where run.id = :run and run.deadline_asked = 0;
