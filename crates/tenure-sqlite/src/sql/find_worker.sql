-- find_worker.sql: what a worker is called.
-- Zero rows means that it never registered.
select worker.name from worker where worker.id = :worker;
