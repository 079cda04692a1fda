-- list_partitions.sql: partitions by run and name. Zero rows: none matches.
--   $1 tenant or null for all, $2 run or null, $3 only active ones, $4 without progress for so many ms or null, $5 state or null,
--   $6 and $7 only behind this one, $8 limit, $9 now or null for the clock
select p.run, p.name, p.state, p.next_offset, p.page_limit, p.rows, p.expected, p.job, p.finished, tenure.json_shown(p.last_error, 65536) as last_error, p.created_at, p.started_at, p.moved_at
from tenure.partition p
where ($2::uuid is null or p.run = $2) and (not $3::boolean or p.state in (0, 1)) and ($5::smallint is null or p.state = $5)
  and ($4::bigint is null or (p.state in (0, 1) and p.moved_at <= coalesce($9::timestamptz, statement_timestamp()) - $4 * interval '1 ms'))
  and ($6::uuid is null or (p.run, p.name) > ($6, $7::text collate "C"))
  and ($1::text is null or exists (select from tenure.run r join tenure.tenant t on t.id = r.tenant where r.id = p.run and t.name = $1))
order by p.run, p.name
limit $8::bigint
