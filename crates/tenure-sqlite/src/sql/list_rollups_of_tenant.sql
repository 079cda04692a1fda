-- list_rollups_of_tenant.sql: sums of one step and one tenant, as they are kept.
-- Zero rows means that nothing happened, or that there is no such tenant.
select rollup.at, tenant.name, queue.name, rollup.kind, rollup.counters, rollup.run, rollup.run_micros, rollup.wait,
    rollup.wait_micros
from tenant
cross join rollup
join queue on queue.id = rollup.queue
where tenant.name = :sight
  and rollup.tenant = tenant.id and rollup.step = :step and rollup.at >= :since and rollup.at < :until
  and (:queue is null or queue.name = :queue)
  and (:kind is null or rollup.kind = :kind);
