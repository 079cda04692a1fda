-- add_partitions.sql: new streams of pages.
--   $1 run, $2 names, $3 offsets, $4 limits, $5 expected, $6 jobs, $7 now or null for the clock
insert into tenure.partition (run, name, next_offset, page_limit, expected, job, created_at, moved_at)
select $1::uuid, n.name, n.next_offset, n.page_limit, n.expected, n.job, m.at, m.at
from unnest($2::text[], $3::bigint[], $4::int[], $5::bigint[], $6::uuid[]) n (name, next_offset, page_limit, expected, job)
cross join coalesce($7::timestamptz, clock_timestamp()) m (at)
order by n.name
