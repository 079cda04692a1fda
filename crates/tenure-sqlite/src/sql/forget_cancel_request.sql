-- forget_cancel_request.sql: a revived or pruned job is asked nothing.
-- Zero rows means that nobody had asked.
delete from cancel_request where cancel_request.job = :job;
