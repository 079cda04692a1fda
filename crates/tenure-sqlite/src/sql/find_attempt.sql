-- find_attempt.sql: how a grant ended, for the worker that had it.
-- Zero rows means that it has not ended, or never was this worker's.
select attempt.how
from attempt
where attempt.job = :job and attempt.lease = :lease
  and attempt.worker = :worker;
