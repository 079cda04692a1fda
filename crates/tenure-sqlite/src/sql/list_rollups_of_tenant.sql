-- list_rollups_of_tenant.sql: sums of one step and one tenant, or of all tenants together, as they are kept.
-- Zero rows means that nothing happened, or that there is no such tenant.
select rollup.at, :sight, queue.name, rollup.kind, rollup.counters, rollup.run, rollup.run_micros, rollup.wait,
    rollup.wait_micros
from rollup indexed by rollup_tenant
join queue on queue.id = rollup.queue
where rollup.tenant = iif(:sight is null, 0, (select tenant.id from tenant where tenant.name = :sight))
  and rollup.step = :step and rollup.at >= :since and rollup.at < :until
  and (:queue is null or queue.name = :queue)
  and (:kind is null or rollup.kind = :kind);
