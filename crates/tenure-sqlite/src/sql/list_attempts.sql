-- list_attempts.sql: the ended attempts of a job, oldest first.
-- Zero rows means that none has ended.
select attempt.lease, attempt.attempt, attempt.how, worker.name, attempt.started_at, attempt.ended_at, attempt.error,
    attempt.result, attempt.usage
from attempt
left join worker on worker.id = attempt.worker
where attempt.job = :job
order by attempt.lease;
