-- prune_job.sql: a pruned job goes; its journal stays.
delete from job where job.id = :job;
