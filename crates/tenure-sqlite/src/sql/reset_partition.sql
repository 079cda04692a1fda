-- reset_partition.sql: it goes on from another offset with a new job.
update partition set next_offset = :offset, rows = 0, job = :job, finished = 0, state = 0, last_error = null, moved_at = :now
where partition.run = :run and partition.name = :name;
