-- draw_lease_no.sql: a number for an ending without a lease, from the sequence of the leases, so that no key repeats.
-- Zero rows means that somebody emptied sqlite_sequence.
update sqlite_sequence set seq = seq + 1 where name = 'lease' returning seq;
