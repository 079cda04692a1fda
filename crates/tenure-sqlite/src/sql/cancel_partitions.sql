-- cancel_partitions.sql: no page of a run goes on.
-- The rows changed are the partitions that were on their way.
update partition set state = 4, moved_at = :now
where partition.run = :run and partition.state in (0, 1) and partition.finished = 0;
