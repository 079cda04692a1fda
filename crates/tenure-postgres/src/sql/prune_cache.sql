-- prune_cache.sql: answers that are over go, and the oldest of those that are too many; rows are those that went.
-- A bounded batch. One that somebody replaces just now is skipped, not waited for.
--   $1 at most so many stay, $2 now or null for the clock
with over as materialized (
  select key from tenure.cache where expires_at <= coalesce($2::timestamptz, clock_timestamp()) limit 1000 for update skip locked
), old as materialized (
  select key from tenure.cache order by put_at, key
  limit least(1000, greatest(0, (select count(*) from tenure.cache) - $1::bigint)) for update skip locked
)
delete from tenure.cache c where c.key = any (array(select key from over union select key from old)) returning c.key
