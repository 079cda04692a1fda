-- renew_lease.sql: push the deadline of one lease out, by the time its queue gives now.
-- Zero rows means that it is gone or somebody else's: unknown to the caller, who asks again.
update lease
set renewed_at = :now,
    expires_at = :now + 1000 * (select queue.lease_ttl_ms from queue where queue.id = lease.queue)
where lease.no = :lease
  and lease.worker = :worker
returning jobs;
