-- release_unknown.sql: give back what this worker holds under leases it does not know. Zero rows: there are none.
--   $1 worker, $2 known lease numbers, $3 the newest number that is meant, $4 now or null for the clock
select job from tenure.release_unknown($1, $2, $3, $4) job
