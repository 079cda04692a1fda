-- open_queue.sql: the queue a claim may take from.
-- Zero rows means that it is paused or unknown: nothing is handed out.
select queue.id, queue.lease_ttl_ms, queue.lined
from queue
where queue.name = :name
  and queue.paused = 0;
