-- request_cancel.sql: ask the holder of a running job to stop.
-- Zero rows means that it was asked before.
insert into cancel_request (job, requested_at) values (:job, :now) on conflict (job) do nothing;
