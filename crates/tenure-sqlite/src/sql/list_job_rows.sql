-- list_job_rows.sql: what happened to a job, newest first: rows of the leases that held it, and rows without a lease that
-- name it alone. What names several jobs without a lease is a prune, and pruned jobs are not there.
-- Zero rows means that nothing has happened yet.
-- The indexes are named since the order by id would have the journal read from its end instead.
select journal.id, journal.at, journal.worker, journal.actor, journal.event, journal.lease, journal.jobs,
    journal.reason, journal.details
from journal indexed by journal_lease
where journal.lease in (select attempt.lease from attempt where attempt.job = :job union select :held)
  and instr(journal.jobs, :text) > 0
union all
select journal.id, journal.at, journal.worker, journal.actor, journal.event, journal.lease, journal.jobs,
    journal.reason, journal.details
from journal indexed by journal_job
where journal.lease is null and json_array_length(journal.jobs) = 1 and json_extract(journal.jobs, '$[0]') = :text
order by 1 desc
limit :limit;
