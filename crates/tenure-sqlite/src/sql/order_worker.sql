-- order_worker.sql: tell a worker what to do.
-- Zero rows cannot be: the caller has just found it.
update worker set told = :told where worker.id = :worker;
