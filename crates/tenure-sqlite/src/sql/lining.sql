-- lining.sql: whether a queue is fair, and whether it has lines.
-- Zero rows cannot be: the caller has just found the queue.
select queue.fair, queue.lined from queue where queue.id = :queue;
