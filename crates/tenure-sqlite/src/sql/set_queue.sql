-- set_queue.sql: change the lease time of a queue.
-- Zero rows cannot be: the caller has just added the queue.
update queue set lease_ttl_ms = :lease_ttl_ms where queue.name = :name;
