-- register_worker.sql: a worker process has started.
-- Never zero rows: every start is a worker of its own.
insert into worker (name, started_at) values (:name, :now) returning id;
