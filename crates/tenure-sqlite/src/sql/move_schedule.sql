-- move_schedule.sql: the compare-and-set of a schedule; answers what its fire asks for.
-- No row: it is not as it was read, or the fire is yet to come.
update schedule set version = version + 1, last_at = max(last_at, coalesce(:fire_at, last_at)), look_at = :look_at
where schedule.id = :id
    and schedule.version = :version
    and schedule.paused = 0
    and coalesce(:fire_at, :now) <= :now
returning queue, kind, payload, priority, gate, max_attempts, max_losses, backoff,
    (select tenant.name from tenant where tenant.id = schedule.tenant)
