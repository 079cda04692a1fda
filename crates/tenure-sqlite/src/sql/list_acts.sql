-- list_acts.sql: what people and rules did, below an id, newest first, and whether each names the subject (tenure_store::journal::SUBJECTS).
-- Zero rows means that there are no more.
select journal.id, journal.at, journal.worker, journal.actor, journal.event, journal.lease, journal.jobs,
    journal.reason, journal.details,
    :subject is null or exists (
        select 1 from json_each(journal.details) as said
        where said.key in ('queue', 'gate', 'schedule', 'key', 'tenant', 'endpoint', 'run', 'worker')
          and cast(said.value as text) = :subject)
from journal indexed by journal_acts
where (journal.lease is null or journal.worker is null) and journal.id < :before
order by journal.id desc
limit :limit;
