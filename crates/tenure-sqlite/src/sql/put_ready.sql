-- put_ready.sql: a job waits for its claim. `ready_job` refuses a second row of one job.
insert into ready (queue, line, priority, run_at, job, attempt, losses, state)
values (:queue, :line, :priority, :run_at, :job, :attempt, :losses, :state);
