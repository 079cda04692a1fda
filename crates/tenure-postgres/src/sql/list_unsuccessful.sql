-- list_unsuccessful.sql: ids of failed, dead or canceled jobs, newest first, by their own index. Zero rows: none match.
--   $1 tenant, $2 queue, $3 kind, $4 before this id, $5 limit, $6 from this id, $7 created since, $8 created until,
--   $9 how
select a.job as id
from tenure.attempt a
join tenure.job j on j.id = a.job
where a.final and a.how <> 1
  and a.how = $9::smallint
  and a.job < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and a.job >= coalesce($6::uuid, '00000000-0000-0000-0000-000000000000')
  and ($7::timestamptz is null or j.created_at >= $7)
  and ($8::timestamptz is null or j.created_at < $8)
  and ($1::text is null or j.tenant = (select id from tenure.tenant where name = $1))
  and ($2::text is null or j.queue = (select id from tenure.queue where name = $2))
  and ($3::text is null or j.kind = $3)
order by a.job desc
limit $5::bigint
