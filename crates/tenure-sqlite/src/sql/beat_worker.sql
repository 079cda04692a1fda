-- beat_worker.sql: what a worker is and does now. The last word stands; the answer is what it is told to do.
-- Zero rows means that nobody was given this number.
update worker
set seen_at = :now, state = :state, running = :running, reporting = :reporting, version = :version, host = :host,
    pid = :pid, queues = :queues
where worker.id = :worker
returning worker.told;
