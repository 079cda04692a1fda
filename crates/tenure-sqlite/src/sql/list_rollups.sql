-- list_rollups.sql: sums of one step for each tenant, as they are kept.
-- Zero rows means that nothing happened.
select rollup.at, tenant.name, queue.name, rollup.kind, rollup.counters, rollup.run, rollup.run_micros, rollup.wait,
    rollup.wait_micros
from rollup
join tenant on tenant.id = rollup.tenant
join queue on queue.id = rollup.queue
where rollup.step = :step and rollup.at >= :since and rollup.at < :until
  and (:queue is null or queue.name = :queue)
  and (:kind is null or rollup.kind = :kind);
