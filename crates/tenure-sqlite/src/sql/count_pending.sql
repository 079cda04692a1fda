-- count_pending.sql: how many jobs are pending in the lines that begin with a tenant's number, or with nothing; `limit` are
-- enough. A gate's name follows after /, and 0 comes after /.
select count(*)
from (
    select 1 from ready
    where ready.queue = :queue and ready.line >= :line and ready.line < :line || '0'
    limit :limit
);
