-- reclaim_jobs.sql: take back what expired leases held. Zero rows: nothing has expired, or somebody has it locked.
--   $1 worker or null, $2 leases at most, $3 now or null for the clock
select job, lease, worker, how from tenure.reclaim($1, $2, $3)
