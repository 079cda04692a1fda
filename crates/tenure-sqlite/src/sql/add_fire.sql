-- add_fire.sql: the row of a fire. None added: this fire time has its job.
insert into schedule_fire (schedule, fire_at, job) values (:schedule, :fire_at, :job)
on conflict (schedule, fire_at) do nothing
