-- find_partition.sql: one partition.
-- Zero rows: nobody knows it.
select partition.state, partition.job, partition.finished, partition.last_error, partition.run, partition.name,
    partition.next_offset, partition.page_limit, partition.rows, partition.expected, partition.created_at,
    partition.started_at, partition.moved_at
from partition
where partition.run = :run
  and partition.name = :name;
