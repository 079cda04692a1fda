-- has_due.sql: whether a claim of this queue and priority would find something.
-- Zero rows means that it would not.
select 1
from queue
cross join ready on ready.queue = queue.id
where queue.name = :name
  and queue.paused = 0
  and ready.priority = :priority
  and ready.run_at <= :now
  and ready.state <> 0
limit 1;
