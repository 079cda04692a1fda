-- remove_ready.sql: a job leaves the line by an operator's word.
-- Zero rows means that it does not wait.
delete from ready where ready.job = :job;
