-- has_lease.sql: whether a lease is there, whosever it is.
-- Zero rows means that it is gone, or never was.
select 1 from lease where lease.no = :lease;
