-- list_gates.sql: gates by name with their rules, and what was reported and is not folded yet.
-- Zero rows: none matches.
--   $1 names to find or null, $2 first name, $3 the name before which to end, $4 the name to begin behind, $5 limit,
--   $6 now or null for the clock
select g.name, t.pattern, g.in_use, g.full_at, g.streak, g.open_until, g.probe, g.deaf_to, g.newest, g.paused_until, g.held_until, g.succeeded_at, g.failed_at,
  g.pause_reason, g.trip_reason, r.rate_count, r.rate_period_ms, r.rate_burst, r.rate_cost, r.concurrency, r.breaker_failures, r.breaker_cooldown_ms,
  coalesce(r.weight, 1) as weight, e.leases, e.ats, e.healths, e.holds, coalesce($6::timestamptz, clock_timestamp()) as now
from (
  select g.id, g.name, g.in_use, g.full_at, g.streak, g.open_until, g.probe, g.deaf_to, g.newest, g.paused_until, g.held_until, g.succeeded_at, g.failed_at,
    g.pause_reason, g.trip_reason
  from tenure.gate g
  where ($1::text[] is null or g.name = any ($1))
    and g.name >= $2::text and g.name < $3::text and g.name > $4::text
  order by g.name limit $5::bigint
) g
cross join lateral (select tenure.rule_of(g.name) as pattern) t
left join tenure.gate_rule r on r.pattern = t.pattern
left join lateral (
  select array_agg(e.lease order by e.id) as leases, array_agg(e.at order by e.id) as ats, array_agg(e.health order by e.id) as healths,
    array_agg(e.hold_until order by e.id) as holds
  from tenure.gate_event e where e.gate = g.id
) e on true
order by g.name
