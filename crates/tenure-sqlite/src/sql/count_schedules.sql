-- count_schedules.sql: how many schedules a tenant has.
select count(*) from schedule where schedule.tenant = :tenant
