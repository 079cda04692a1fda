-- next_line.sql: the line of a queue after this one that has anything in it: one step over all jobs of a line.
-- Zero rows means that there are no more.
select ready.line
from ready
where ready.queue = :queue
  and ready.line > :after
order by ready.line
limit 1;
