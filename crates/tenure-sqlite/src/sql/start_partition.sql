-- start_partition.sql: its first page begins.
update partition set state = 1, started_at = coalesce(started_at, :now), moved_at = :now
where partition.run = :run and partition.name = :name and partition.state = 0;
