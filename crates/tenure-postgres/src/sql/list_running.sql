-- list_running.sql: ids of running jobs, newest first. Leases are few: one per claimed batch. Zero rows: none match.
--   $1 tenant, $2 queue, $3 kind, $4 before this id, $5 limit, $6 not renewed for so many ms or null, $7 now or null for the clock
select u.job as id
from tenure.lease l
cross join lateral unnest(l.jobs) u (job)
join tenure.job j on j.id = u.job
where u.job < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
  and ($6::bigint is null or l.renewed_at < coalesce($7::timestamptz, clock_timestamp()) - $6 * interval '1 ms')
  and ($1::text is null or j.tenant = (select id from tenure.tenant where name = $1))
  and ($2::text is null or l.queue = (select id from tenure.queue where name = $2))
  and ($3::text is null or j.kind = $3)
order by u.job desc
limit $5::bigint
