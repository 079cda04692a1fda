-- has_weights.sql: whether any line may have another share than the others.
-- Zero rows means that all are equal.
select 1 from gate_rule where gate_rule.weight <> 1 limit 1;
