-- due_schedules.sql: due schedules, tenants in turn: the longest due of each tenant, then the second of each, and so on.
-- Only the :ranked longest due are ranked, without their payloads. No row: nothing is due.
with due as (
    select id, tenant, look_at
    from schedule
    where schedule.look_at <= :now
        and schedule.paused = 0
    order by look_at, id
    limit :ranked
), ranked as (
    select id, look_at, row_number() over (partition by tenant order by look_at, id) as turn
    from due
), page as (
    select id, look_at, turn
    from ranked
    order by turn, look_at, id
    limit :limit
)
select schedule.queue, schedule.kind, schedule.payload, schedule.priority, schedule.gate, schedule.max_attempts,
    schedule.max_losses, schedule.backoff, tenant.name, schedule.id, schedule.version, schedule.name, schedule.cron,
    schedule.zone, schedule.missed, schedule.grace_ms, schedule.paused, schedule.pause_reason, schedule.last_at
from page
join schedule on schedule.id = page.id
join tenant on tenant.id = schedule.tenant
order by page.turn, page.look_at, page.id
