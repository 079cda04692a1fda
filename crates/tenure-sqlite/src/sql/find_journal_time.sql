-- find_journal_time.sql: the time of the first journal row from an id on.
-- Zero rows means that there is none.
select journal.at from journal where journal.id >= :id order by journal.id limit 1;
