-- find_remote.sql: what proves a worker that comes over HTTP.
-- Zero rows means that nobody was given this number, or that the worker does not come over HTTP.
select worker.remote_key, worker.remote_hash from worker where worker.id = :worker and worker.remote_hash is not null;
