-- last_journal_id.sql: the id of the newest journal row; null when there is none.
select max(journal.id) from journal;
