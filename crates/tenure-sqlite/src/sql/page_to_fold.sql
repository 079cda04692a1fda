-- page_to_fold.sql: sealed journal rows that are not summed yet, with how many jobs each names.
-- Zero rows means that everything sealed is summed.
select journal.id, json_array_length(journal.jobs)
from journal
where journal.id > (select rollup_cursor.after from rollup_cursor)
  and journal.id <= (select coalesce(max(seal.last), 0) from seal)
order by journal.id
limit :limit;
