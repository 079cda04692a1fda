-- list_schedules.sql: a page of schedules in the order of tenant and name.
select schedule.queue, schedule.kind, schedule.payload, schedule.priority, schedule.gate, schedule.max_attempts,
    schedule.max_losses, schedule.backoff, tenant.name, schedule.id, schedule.version, schedule.name, schedule.cron,
    schedule.zone, schedule.missed, schedule.grace_ms, schedule.paused, schedule.pause_reason, schedule.last_at
from schedule
join tenant on tenant.id = schedule.tenant
where (tenant.name, schedule.name) > (:after_tenant, :after)
    and (:sight is null or tenant.name = :sight)
order by tenant.name, schedule.name
limit :limit
