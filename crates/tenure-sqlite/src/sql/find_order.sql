-- find_order.sql: what a worker is told to do.
-- Zero rows means that nobody was given this number.
select worker.told from worker where worker.id = :worker;
