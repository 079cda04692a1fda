-- add_job.sql: store the request.
-- Zero rows means that a job of this id is there: the enqueue was sent twice.
insert into job (
    id, tenant, queue, line, kind, priority, payload, max_attempts, max_losses, backoff, scope, key, policy, trace, part,
    run_at, created_at)
values (
    :id, :tenant, :queue, :line, :kind, :priority, :payload, :max_attempts, :max_losses, :backoff, :scope, :key, :policy,
    :trace, :part, :run_at, :now)
on conflict (id) do nothing;
