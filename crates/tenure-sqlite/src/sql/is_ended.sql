-- is_ended.sql: whether a grant has ended.
-- Zero rows means that it has not.
select 1 from attempt where attempt.job = :job and attempt.lease = :lease;
