-- save_partitions.sql: where partitions stand after what their pages' jobs said. The caller holds them.
--   $1 runs, $2 names, $3 states, $4 last errors, $5 now or null for the clock
update tenure.partition p set state = n.state, last_error = n.last_error::jsonb, moved_at = coalesce($5::timestamptz, clock_timestamp())
from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[]) n (run, name, state, last_error)
where p.run = n.run and p.name = n.name
