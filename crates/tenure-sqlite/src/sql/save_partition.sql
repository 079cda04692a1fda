-- save_partition.sql: where a partition stands after what its page's job said.
update partition set state = :state, last_error = :last_error, moved_at = :now
where partition.run = :run and partition.name = :name;
