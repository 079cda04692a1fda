-- list_rules.sql: rules by pattern. Zero rows: there is none (for this gate).
--   $1 a gate's name, for the one rule it obeys, or null for all; $2 limit; $3 now or null for the clock
select r.pattern, r.rate_count, r.rate_period_ms, r.rate_burst, r.rate_cost, r.concurrency, r.breaker_failures, r.breaker_cooldown_ms, r.weight,
  coalesce($3::timestamptz, clock_timestamp()) as now
from tenure.gate_rule r
where $1::text is null or r.pattern = tenure.rule_of($1)
order by r.pattern
limit $2::bigint
