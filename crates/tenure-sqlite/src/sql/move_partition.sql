-- move_partition.sql: a page's rows are there, and the partition goes on behind them: with the next page, or it has ended.
-- Zero rows means that this is not the page it waits for. One that has failed and was revived may not be counted as such yet.
update partition set next_offset = :offset + :rows, rows = partition.rows + :rows, job = coalesce(:next, partition.job),
    finished = :next is null, state = max(partition.state, 1), started_at = coalesce(started_at, :now), moved_at = :now
where partition.run = :run and partition.name = :name and partition.job = :job and partition.next_offset = :offset
  and partition.state in (0, 1, 3) and partition.finished = 0
  and (partition.state <> 3 or exists (select 1 from run where run.id = partition.run and run.state <> 4));
