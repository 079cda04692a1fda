-- count_pending.sql: how many jobs are pending in the lines from one to before another; `limit` are enough.
select count(*)
from (
    select 1 from ready
    where ready.queue = :queue and ready.line >= :line and ready.line < :end
    limit :limit
);
