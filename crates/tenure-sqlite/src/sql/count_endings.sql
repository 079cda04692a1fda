-- count_endings.sql: how many attempts ended one way since then, by queue and kind; the caller asks for one way after
-- the other, each a range of the index.
-- Zero rows means that none did.
select queue.name, job.kind, count(*)
from attempt indexed by attempt_ended
cross join job on job.id = attempt.job
cross join queue on queue.id = job.queue
where attempt.final in (0, 1) and attempt.how = :how and attempt.ended_at > :ended_after
group by queue.name, job.kind
order by queue.name, job.kind
limit :limit;
