-- expired_leases.sql: leases nobody renewed in time, longest overdue first.
-- Zero rows means that everybody is alive.
select lease.no, lease.queue, lease.worker, lease.claimed_at, lease.jobs, lease.attempts, lease.losses,
    lease.gates, (select queue.parted from queue where queue.id = lease.queue)
from lease
where lease.expires_at < :now
order by lease.expires_at, lease.no
limit :limit;
