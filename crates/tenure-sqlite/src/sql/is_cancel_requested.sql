-- is_cancel_requested.sql: whether somebody asked to cancel a job. Zero rows means that nobody did.
select 1 from cancel_request where job = :job;
