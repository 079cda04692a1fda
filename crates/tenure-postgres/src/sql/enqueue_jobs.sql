-- enqueue_jobs.sql: store jobs, all or none; one row per job in the order given.
--   $1 … $18 columns, $19 now or null for the clock, $20 gates, $21 parts of runs, $22 callback urls, $23 KiB of payloads
select job, created, state from tenure.enqueue_rows($1, $2, $3, $4, $5::text[]::jsonb[], $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
order by ord
