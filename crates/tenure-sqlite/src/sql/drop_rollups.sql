-- drop_rollups.sql: delete sums past their retention.
-- Zero changes means that there are none.
delete from rollup
where (step, at, tenant, queue, kind) in (
    select old.step, old.at, old.tenant, old.queue, old.kind from rollup as old
    where old.step = :step and old.at < :before
    limit :limit);
