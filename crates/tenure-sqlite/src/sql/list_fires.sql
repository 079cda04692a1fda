-- list_fires.sql: the last fires of a schedule, the newest first.
select fire_at, job from schedule_fire where schedule = :schedule order by fire_at desc limit :limit
