-- add_sequences.sql: a row for each sequence that leaps; SQLite makes it with the first number that is drawn.
insert into sqlite_sequence (name, seq)
select leaps.name, 0
from (select 'lease' as name union all select 'journal' union all select 'worker') as leaps
where not exists (select 1 from sqlite_sequence where sqlite_sequence.name = leaps.name);
