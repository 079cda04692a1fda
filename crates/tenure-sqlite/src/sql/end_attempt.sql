-- end_attempt.sql: an attempt ends. What follows is derived from what was inserted here, never from the input.
-- Zero rows means that this grant has ended before: whoever came first decided.
insert into attempt (
    job, lease, attempt, losses, how, final, worker, started_at, ended_at, error, result, usage)
values (
    :job, :lease, :attempt, :losses, :how, :final, :worker, :started_at, :now, :error, :result, :usage)
on conflict (job, lease) do nothing;
