-- take_lease.sql: delete a lease whose jobs the caller has just ended, all of them.
-- Zero rows cannot be: the caller has read it in this transaction.
delete from lease where lease.no = :lease;
