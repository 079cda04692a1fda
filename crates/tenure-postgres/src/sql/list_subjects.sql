-- list_subjects.sql: whom events of jobs concern. Zero rows: nobody who listens.
--   $1 jobs, $2 leases (null where there is none), $3 the kind of jobs that deliver
select i.job, i.lease as asked, t.name as tenant, q.name as queue, j.kind, c.url as callback_url,
  a.lease, a.attempt, a.how, w.name as worker, a.started_at, a.ended_at, a.error::text as error, a.result::text as result, a.usage::text as usage
from unnest($1::uuid[], $2::bigint[]) with ordinality i (job, lease, ord)
join tenure.job j on j.id = i.job
join tenure.tenant t on t.id = j.tenant
join tenure.queue q on q.id = j.queue
left join tenure.job_callback c on c.job = j.id
left join tenure.attempt a on a.job = i.job and a.lease = i.lease
left join tenure.worker w on w.id = a.worker
where j.kind = $3::text or exists (select from tenure.webhook_endpoint e where e.tenant = j.tenant and e.disabled_at is null)
order by i.ord
