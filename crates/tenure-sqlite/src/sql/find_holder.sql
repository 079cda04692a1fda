-- find_holder.sql: the live lease of a running job. `instr` only narrows the walk; the attempt decides (L1).
-- Zero rows means that nobody holds it.
select lease.no, lease.queue, lease.worker, lease.claimed_at, lease.jobs, lease.attempts, lease.losses,
    lease.gates, (select queue.parted from queue where queue.id = lease.queue), lease.renewed_at, lease.expires_at,
    worker.name
from lease
left join worker on worker.id = lease.worker
where instr(lease.jobs, :text) > 0
  and not exists (
    select 1 from attempt where attempt.job = :job and attempt.lease = lease.no)
order by lease.no desc
limit 1;
