-- renew_lease.sql: push the deadline of one lease out, by the time it was claimed with: its holder counts with that.
-- Zero rows means that it is gone or somebody else's: unknown to the caller, who asks again.
update lease
set renewed_at = :now,
    expires_at = :now + (expires_at - coalesce(renewed_at, claimed_at))
where lease.no = :lease
  and lease.worker = :worker
returning jobs;
