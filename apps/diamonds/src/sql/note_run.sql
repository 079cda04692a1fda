-- note_run: what only this product knows of a run; noted again when the job that creates it is tried again. Zero rows: it is
-- published, and stays as it is.
insert into diamonds_run (run_id, trace_id, as_of, partitions, stones, created_at, told)
values ($1, $2, $3, $4, $5, $6, false)
on conflict (run_id) do update set
  trace_id = excluded.trace_id,
  as_of = excluded.as_of,
  partitions = excluded.partitions,
  stones = excluded.stones,
  created_at = excluded.created_at
where diamonds_run.published_at is null
