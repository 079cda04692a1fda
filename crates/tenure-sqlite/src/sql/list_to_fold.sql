-- list_to_fold.sql: what happened to each job in these journal rows, where it says something of an attempt.
-- Zero rows means that it says nothing of any, or that all these jobs were pruned.
--
-- Looked up by primary keys, one by one: a cross join is done in the order it is written. The wait is that of a first
-- start: nothing of the job has ended before, and it did not wait to be opened.
select journal.at, journal.event, job.tenant, job.queue, job.kind, job.line,
    case when journal.event between 11 and 14 then (
        select max(attempt.ended_at - attempt.started_at, 0) from attempt
        where attempt.job = job.id and attempt.lease = journal.lease) end,
    case when journal.event = 1
        and not exists (select 1 from attempt where attempt.job = job.id and attempt.lease < journal.lease)
        and not exists (select 1 from journal as opened
            where opened.event = 4 and opened.jobs = '["' || listed.value || '"]')
        then max(journal.at - max(job.run_at, job.created_at), 0) end
from journal
cross join json_each(journal.jobs) as listed
cross join job
where journal.id > (select rollup_cursor.after from rollup_cursor) and journal.id <= :last
  and (journal.event = 1 or journal.event between 11 and 18)
  and job.id = unhex(listed.value, '-');
