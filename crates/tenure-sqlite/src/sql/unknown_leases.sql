-- unknown_leases.sql: leases of a worker that it does not know: the claims whose reply was lost.
-- Zero rows means that it knows all it holds.
select lease.no, lease.queue, lease.worker, lease.claimed_at, lease.jobs, lease.attempts, lease.losses,
    lease.gates, (select queue.parted from queue where queue.id = lease.queue)
from lease
where lease.no not in (select value from json_each(:known))
  and lease.worker = :worker
  and lease.no <= :newest
order by lease.no;
