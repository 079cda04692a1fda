-- remove_rule.sql: a rule goes.
-- Zero rows means that there was none of this pattern.
delete from gate_rule where gate_rule.pattern = :pattern;
