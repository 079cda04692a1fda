-- count_open_runs.sql: how many queued and running runs a tenant has.
select count(*) from run where run.tenant = :tenant and run.state in (0, 1)
