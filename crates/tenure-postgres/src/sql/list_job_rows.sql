-- list_job_rows.sql: what happened to a job, newest first. Raises TN404 for a job that is not there or out of sight; zero
-- rows: nothing yet.
--   $1 job, $2 tenant or null, $3 limit
--
-- Rows of the leases that held it, and rows without a lease that name it alone, each by its index. What names several
-- jobs without a lease is a prune, and pruned jobs are not there.
with held as materialized (
  select h.no from (
    select a.lease as no from tenure.attempt a where a.job = $1::uuid
    union
    select l.no from tenure.lease l where $1 = any (l.jobs)
  ) h
  order by h.no desc limit $3::bigint
)
select r.id, r.at, r.worker, r.actor, r.event, r.lease, array[j.id] as jobs, r.reason, case when r.details is not null then tenure.json_shown(r.details) end as details
from tenure.find_job($1, $2::text) j
cross join lateral (
  select g.id, g.at, g.worker, g.actor, g.event, g.lease, g.reason, g.details
  from held h cross join lateral (
    select g.id, g.at, g.worker, g.actor, g.event, g.lease, g.reason, g.details from tenure.journal g where g.lease = h.no and $1 = any (g.jobs) offset 0
  ) g
  union all
  select g.id, g.at, g.worker, g.actor, g.event, g.lease, g.reason, g.details
  from tenure.journal g where g.lease is null and cardinality(g.jobs) = 1 and g.jobs[1] = $1
) r
order by r.id desc
limit $3
