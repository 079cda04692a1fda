-- hold_lease.sql: what a lease holds, for its holder. Expired and not yet reclaimed is still its holder's.
-- Zero rows means that it is gone or somebody else's: look at `attempt` before saying so.
select lease.no, lease.queue, lease.worker, lease.claimed_at, lease.jobs, lease.attempts, lease.losses,
    lease.gates, (select queue.parted from queue where queue.id = lease.queue)
from lease
where lease.no = :lease
  and lease.worker = :worker;
