-- list_partitions.sql: partitions by run and name.
-- Zero rows means that none matches.
select partition.state, partition.job, partition.finished, partition.last_error, partition.run, partition.name,
    partition.next_offset, partition.page_limit, partition.rows, partition.expected, partition.created_at,
    partition.started_at, partition.moved_at
from partition
where (:run is null or partition.run = :run)
  and (:after_run is null or (partition.run, partition.name) > (:after_run, :after_name))
  and (:active = 0 or partition.state in (0, 1))
  and (:state is null or partition.state = :state)
  and (:moved_before is null or partition.state in (0, 1) and partition.moved_at <= :moved_before)
  and (:sight is null or exists (
    select 1 from run join tenant on tenant.id = run.tenant where run.id = partition.run and tenant.name = :sight))
order by partition.run, partition.name
limit :limit;
