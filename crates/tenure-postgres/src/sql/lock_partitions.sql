-- lock_partitions.sql: partitions whose page is not just being committed, locked.
--   $1 runs, $2 names
select p.run, p.name, p.state, p.next_offset, p.page_limit, p.rows, p.expected, p.job, p.finished, tenure.json_shown(p.last_error, 65536) as last_error, p.created_at, p.started_at, p.moved_at
from unnest($1::uuid[], $2::text[]) n (run, name) join tenure.partition p on p.run = n.run and p.name = n.name
order by p.run, p.name
for no key update of p skip locked
