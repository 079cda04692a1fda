-- set_lined.sql: a job goes into a line of its own.
-- Zero rows means that the queue had lines before.
update queue set lined = 1 where queue.id = :queue and queue.lined = 0;
