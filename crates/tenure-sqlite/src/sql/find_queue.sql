-- find_queue.sql: the number of a queue, paused or not.
-- Zero rows means that nothing was ever stored for it.
select queue.id, queue.paused from queue where queue.name = :name;
