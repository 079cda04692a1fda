-- drop_leases.sql: delete those of these leases whose jobs have all ended; rows are the numbers that are gone now.
-- A number that is missing is still needed, locked just now, or another worker's.
--   $1 worker, $2 lease numbers
with empty as materialized (
  select l.no from tenure.lease l
  where l.no = any ($2::bigint[])
    and l.worker = $1::int
    -- Counted one by one: as an anti join, PostgreSQL 16 and later may read all attempts for each lease.
    and cardinality(l.jobs) = (
      select count(*) from unnest(l.jobs) u (job)
      cross join lateral (select from tenure.attempt a where a.job = u.job and a.lease = l.no offset 0) ended
    )
  order by l.no for update skip locked
), dropped as (
  delete from tenure.lease l where l.no = any (array(select no from empty)) returning l.no
)
select n.no from unnest($2::bigint[]) n (no)
where n.no = any (array(select no from dropped)) or n.no <> all (array(select l.no from tenure.lease l where l.no = any ($2::bigint[])))
