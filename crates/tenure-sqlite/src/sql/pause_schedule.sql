-- pause_schedule.sql: pause a schedule or resume it, from now on. No row changed: it was so before.
update schedule set version = version + 1, paused = :paused, pause_reason = :reason,
    last_at = iif(:paused, last_at, :now), look_at = iif(:paused, look_at, :now)
where id = :id and paused <> :paused
