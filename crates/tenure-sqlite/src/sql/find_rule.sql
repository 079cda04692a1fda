-- find_rule.sql: the rule a gate obeys: the one of its name, else the one of its longest beginning.
-- Zero rows means that nothing is asked of it.
select gate_rule.pattern, gate_rule.rate_count, gate_rule.rate_period_ms, gate_rule.rate_burst, gate_rule.rate_cost,
    gate_rule.concurrency, gate_rule.breaker_failures, gate_rule.breaker_cooldown_ms, gate_rule.weight
from json_each(:candidates) as candidate
cross join gate_rule on gate_rule.pattern = candidate.value
order by candidate.key
limit 1;
