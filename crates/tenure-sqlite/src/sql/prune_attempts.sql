-- prune_attempts.sql: a pruned job's history goes.
delete from attempt where attempt.job = :job;
