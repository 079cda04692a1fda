-- find_schedule.sql: one schedule by its name. No row: its tenant has none of this name.
select schedule.queue, schedule.kind, schedule.payload, schedule.priority, schedule.gate, schedule.max_attempts,
    schedule.max_losses, schedule.backoff, tenant.name, schedule.id, schedule.version, schedule.name, schedule.cron,
    schedule.zone, schedule.missed, schedule.grace_ms, schedule.paused, schedule.pause_reason, schedule.last_at
from schedule
join tenant on tenant.id = schedule.tenant
where tenant.name = :tenant and schedule.name = :name
