-- read_journal.sql: journal rows by id. There is one writer at a time, so ids are in the order of the commits.
-- Zero rows means that there are no more.
select journal.id, journal.at, journal.worker, journal.actor, journal.event, journal.lease, journal.jobs,
    journal.reason, journal.details
from journal
where journal.id > :after and journal.id <= :last
order by journal.id
limit :limit;
