-- find_lease.sql: the time a lease was claimed with.
-- Zero rows means that it is gone, or not this worker's.
select lease.expires_at - coalesce(lease.renewed_at, lease.claimed_at)
from lease
where lease.no = :lease
and lease.worker = :worker;
