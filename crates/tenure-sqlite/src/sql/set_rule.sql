-- set_rule.sql: a rule comes, or takes the place of the one before.
insert into gate_rule (
    pattern, rate_count, rate_period_ms, rate_burst, rate_cost, concurrency, breaker_failures, breaker_cooldown_ms, weight)
values (
    :pattern, :rate_count, :rate_period_ms, :rate_burst, :rate_cost, :concurrency, :breaker_failures,
    :breaker_cooldown_ms, :weight)
on conflict (pattern) do update
set rate_count = excluded.rate_count, rate_period_ms = excluded.rate_period_ms, rate_burst = excluded.rate_burst,
    rate_cost = excluded.rate_cost, concurrency = excluded.concurrency, breaker_failures = excluded.breaker_failures,
    breaker_cooldown_ms = excluded.breaker_cooldown_ms, weight = excluded.weight;
