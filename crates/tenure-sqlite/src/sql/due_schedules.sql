-- due_schedules.sql: schedules that have to be looked at, the longest due first. No row: nothing to do.
select schedule.queue, schedule.kind, schedule.payload, schedule.priority, schedule.gate, schedule.max_attempts,
    schedule.max_losses, schedule.backoff, tenant.name, schedule.id, schedule.version, schedule.name, schedule.cron,
    schedule.zone, schedule.missed, schedule.grace_ms, schedule.paused, schedule.pause_reason, schedule.last_at
from schedule
join tenant on tenant.id = schedule.tenant
where schedule.look_at <= :now
    and schedule.paused = 0
order by schedule.look_at, schedule.id
limit :limit
