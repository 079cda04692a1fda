-- list_workers.sql: workers, or one, last seen first; those that never beat come last, the newest first.
-- Zero rows means that none ever registered.
select worker.id, worker.name, worker.started_at, worker.seen_at, worker.state, worker.running, worker.reporting,
    worker.version, worker.host, worker.pid, worker.queues, worker.told
from worker
where worker.id = coalesce(:worker, worker.id)
order by worker.seen_at desc nulls last, worker.id desc
limit :limit;
