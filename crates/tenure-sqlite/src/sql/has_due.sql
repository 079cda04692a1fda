-- has_due.sql: whether something waits in a line of this queue with this priority, due now.
-- Zero rows means that nothing does.
select 1
from ready
where ready.queue = :queue
  and ready.line = :line
  and ready.priority = :priority
  and ready.run_at <= :now
  and ready.state <> 0
limit 1;
