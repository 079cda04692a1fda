-- prune_fires.sql: only the newest fires of a schedule are kept.
delete from schedule_fire
where schedule = :schedule and fire_at < (
    select fire_at from schedule_fire where schedule = :schedule order by fire_at desc limit 1 offset :kept - 1)
