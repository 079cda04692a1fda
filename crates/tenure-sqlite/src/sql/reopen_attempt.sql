-- reopen_attempt.sql: the last attempt of a revived job is final no longer.
-- Zero rows means that the job has not ended.
update attempt set final = 0 where attempt.job = :job and attempt.final = 1;
