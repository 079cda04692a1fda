-- store_work_done: says once how a partition ended. Zero rows: that was said before. One that failed and was resumed may
-- still complete. One that has completed stays so, unless somebody reset it since ($6 is when it last moved) and it failed.
insert into diamonds_work_done (run_id, partition_id, status, message, told_at)
values ($1, $2, $3, $4, $5)
on conflict (run_id, partition_id) do update set
  status = excluded.status,
  message = excluded.message,
  told_at = excluded.told_at
where diamonds_work_done.status <> excluded.status
  and (excluded.status = 'completed' or diamonds_work_done.told_at < $6)
