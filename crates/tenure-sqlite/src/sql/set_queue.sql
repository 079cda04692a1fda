-- set_queue.sql: change the lease time of a queue, whether it is fair (then it has lines from now on), and its quota:
-- zero takes it away, null leaves it.
-- Zero rows cannot be: the caller has just added the queue.
update queue
set lease_ttl_ms = :lease_ttl_ms, fair = coalesce(:fair, queue.fair), lined = max(queue.lined, coalesce(:fair, 0)),
    quota = nullif(coalesce(:quota, queue.quota), 0)
where queue.name = :name;
