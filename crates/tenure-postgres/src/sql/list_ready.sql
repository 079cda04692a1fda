-- list_ready.sql: ids of waiting, queued or retryable jobs, newest first, walking ready(job). Zero rows: none match.
--   $1 tenant, $2 queue, $3 kind, $4 before this id, $5 limit, $6 from this id, $7 created since, $8 created until,
--   $9 state code
select r.job as id
from tenure.ready r
join tenure.job j on j.id = r.job
where r.job < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and r.job >= coalesce($6::uuid, '00000000-0000-0000-0000-000000000000')
  and ($7::timestamptz is null or j.created_at >= $7)
  and ($8::timestamptz is null or j.created_at < $8)
  and r.state = $9::smallint
  and ($1::text is null or j.tenant = (select id from tenure.tenant where name = $1))
  and ($2::text is null or r.queue = (select id from tenure.queue where name = $2))
  and ($3::text is null or j.kind = $3)
order by r.job desc
limit $5::bigint
