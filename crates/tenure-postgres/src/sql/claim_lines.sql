-- claim_lines.sql: take due jobs of a queue with lines, of each line no more than its share and its gate allow.
-- Zero rows: no line has anything due, or the queue is paused or unknown.
--   $1 worker, $2 queue, $3 limit, $4 lines, $5 their shares, $6 the priorities in the order they are looked at,
--   $7 now or null for the clock, $8 and $9 as in claim_jobs.sql
select canceled, no, lease_ttl_ms, due, job, attempt, losses, run_at, created_at, kind, payload, priority, max_attempts, max_losses, backoff, trace, tenant,
  line, why, until, part
from tenure.claim_lines($1, $2, $3, $4, $5, $6, $7, $8, $9)
