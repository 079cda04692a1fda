-- journal_traces.sql: the largest id that was drawn for a journal row, and whether an attempt is stored.
select coalesce((select max(sqlite_sequence.seq) from sqlite_sequence where sqlite_sequence.name = 'journal'), 0),
    (select max(attempt.job) from attempt) is not null;
