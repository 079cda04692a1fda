-- save_run.sql: where a run stands now.
update run set state = :state, sealed = :sealed, total = :total, done = :done, failed = :failed, canceled = :canceled,
    fan = :fan, consolidate = coalesce(:consolidate, consolidate), started_at = :started_at, finished_at = :finished_at,
    last_error = :last_error, expired = :expired
where run.id = :run;
