-- list_journal_ids.sql: the id of every journal row, in order.
-- Zero rows means that there are no more.
select journal.id from journal where journal.id >= :from order by journal.id limit :limit;
