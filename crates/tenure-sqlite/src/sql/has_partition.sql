-- has_partition.sql: whether a run has a partition of this name.
-- Zero rows: it has none.
select 1 from partition where partition.run = :run and partition.name = :name;
