-- elect_sweep.sql: may this worker look below the floors now? One row: yes.
-- A time in the future (the clock went back) elects, too.
--   $1 queue, $2 gap in ms, $3 now or null for the clock
with q as materialized (
  select id, coalesce($3::timestamptz, clock_timestamp()) as at from tenure.queue
  where name = $1::text
    and swept_at not between coalesce($3::timestamptz, clock_timestamp()) - $2::bigint * interval '1 ms' and coalesce($3::timestamptz, clock_timestamp())
  for no key update skip locked
)
update tenure.queue u set swept_at = q.at from q where u.id = q.id returning u.id
