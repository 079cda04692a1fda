-- add_partition.sql: a new stream of pages.
insert into partition (run, name, next_offset, page_limit, expected, job, created_at, moved_at)
values (:run, :name, :offset, :limit, :expected, :job, :now, :now);
