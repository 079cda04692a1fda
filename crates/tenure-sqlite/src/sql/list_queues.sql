-- list_queues.sql: queues by name with what is in them.
-- The job that waits longest is the first of its priority: four steps into the index, however many wait. Where there are
-- lines, all of them are walked.
-- Zero rows means that nothing was ever enqueued.
with held as (
    select lease.queue as queue, count(*) as running
    from lease, json_each(lease.jobs) as listed
    where not exists (
        select 1 from attempt where attempt.job = unhex(listed.value, '-') and attempt.lease = lease.no)
    group by lease.queue
)
select queue.name, queue.paused, queue.fair, queue.quota, queue.lease_ttl_ms,
    (select count(*) from ready where ready.queue = queue.id and ready.run_at <= :now and ready.state <> 0),
    (select count(*) from ready where ready.queue = queue.id and (ready.run_at > :now or ready.state = 0)),
    (select count(*) from ready where ready.queue = queue.id and ready.state = 0),
    (select count(*) from ready where ready.queue = queue.id and ready.state = 2),
    coalesce((select held.running from held where held.queue = queue.id), 0),
    case queue.lined when 1 then
        (select min(ready.run_at) from ready where ready.queue = queue.id and ready.run_at <= :now and ready.state <> 0)
    else (select min((
        select ready.run_at from ready
        where ready.queue = queue.id and ready.line = '' and ready.priority = level.value and ready.run_at <= :now and ready.state <> 0
        order by ready.run_at
        limit 1))
        from json_each('[0, 1, 2, 3]') as level) end
from queue
order by queue.name;
