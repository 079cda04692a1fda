-- set_remote.sql: a worker that comes over HTTP, and what proves it.
-- Zero rows cannot be: it was registered just now.
update worker set remote_key = :key, remote_hash = :hash where worker.id = :worker;
