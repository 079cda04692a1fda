-- has_fire.sql: whether this very job is the one of a fire.
select 1 from schedule_fire where schedule = :schedule and fire_at = :fire_at and job = :job
