-- list_jobs.sql: ids of jobs, newest first, walking the primary key. Zero rows: none match.
--   $1 tenant, $2 queue, $3 kind, $4 before this id, $5 limit, $6 from this id, $7 created since, $8 created until,
--   $9 only succeeded
select j.id
from tenure.job j
where j.id < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and j.id >= coalesce($6::uuid, '00000000-0000-0000-0000-000000000000')
  and ($7::timestamptz is null or j.created_at >= $7)
  and ($8::timestamptz is null or j.created_at < $8)
  and ($1::text is null or j.tenant = (select id from tenure.tenant where name = $1))
  and ($2::text is null or j.queue = (select id from tenure.queue where name = $2))
  and ($3::text is null or j.kind = $3)
  and (not $9::boolean or exists (select from tenure.attempt a where a.job = j.id and a.final and a.how = 1))
order by j.id desc
limit $5::bigint
