-- list_running.sql: ids of running jobs, newest first. Leases are few: one per claimed batch. Zero rows: none match.
--   $1 tenant, $2 queue, $3 kind, $4 before this id, $5 limit, $6 from this id, $7 created since, $8 created until,
--   $9 not renewed for so many ms or null, $10 now or null for the clock
select u.job as id
from tenure.lease l
cross join lateral unnest(l.jobs) u (job)
join tenure.job j on j.id = u.job
where u.job < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and u.job >= coalesce($6::uuid, '00000000-0000-0000-0000-000000000000')
  and ($7::timestamptz is null or j.created_at >= $7)
  and ($8::timestamptz is null or j.created_at < $8)
  and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
  and ($9::bigint is null or l.renewed_at <= coalesce($10::timestamptz, clock_timestamp()) - $9 * interval '1 ms')
  and ($1::text is null or j.tenant = (select id from tenure.tenant where name = $1))
  and ($2::text is null or l.queue = (select id from tenure.queue where name = $2))
  and ($3::text is null or j.kind = $3)
order by u.job desc
limit $5::bigint
