-- free_run.sql: an operator lets something of a run go on: nothing of it is canceled any more, and its deadline is new.
update run set sweeping = 0, expired = 0,
    deadline = case when run.sealed = 0 then max(run.deadline, :deadline) when run.deadline > :now then run.deadline end
where run.id = :run;
