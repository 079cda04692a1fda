-- add_queue.sql: make a queue known on its first job, pause or setting.
-- Zero rows means that it was known.
insert into queue (name) values (:name) on conflict (name) do nothing;
