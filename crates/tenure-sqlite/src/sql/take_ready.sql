-- take_ready.sql: a claimed job waits no longer.
-- Zero rows cannot be: the claim has read the row in this transaction, and there is one writer.
delete from ready
where ready.queue = :queue and ready.line = :line and ready.priority = :priority and ready.run_at = :run_at and ready.job = :job;
