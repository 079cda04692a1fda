-- prune_callback.sql: the callback of a pruned job goes with it.
delete from job_callback where job_callback.job = :job;
