-- list_rules.sql: every rule, by pattern.
-- Zero rows means that there is none.
select gate_rule.pattern, gate_rule.rate_count, gate_rule.rate_period_ms, gate_rule.rate_burst, gate_rule.rate_cost,
    gate_rule.concurrency, gate_rule.breaker_failures, gate_rule.breaker_cooldown_ms, gate_rule.weight
from gate_rule
order by gate_rule.pattern
limit :limit;
