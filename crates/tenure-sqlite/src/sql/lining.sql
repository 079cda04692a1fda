-- lining.sql: whether a queue is fair, whether it has lines, and its quota.
-- Zero rows cannot be: the caller has just found the queue.
select queue.fair, queue.lined, queue.quota from queue where queue.id = :queue;
