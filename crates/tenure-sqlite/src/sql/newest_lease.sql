-- newest_lease.sql: the highest number that was drawn so far.
-- Zero rows means that somebody emptied sqlite_sequence.
select seq from sqlite_sequence where name = 'lease';
