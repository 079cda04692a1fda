-- drop_lease.sql: delete a lease whose jobs have all ended.
-- Zero rows means that something in it still runs, or that it is gone or somebody else's.
delete from lease
where lease.no = :lease
  and lease.worker = :worker
  and not exists (
    select 1 from json_each(lease.jobs) as listed
    where not exists (
        select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no));
