-- list_subjects.sql: whom events of jobs concern, without values that are too long. Zero rows: nobody who listens.
--   $1 jobs, $2 leases (null where there is none), $3 the kind of jobs that deliver, $4 bytes of a value at most
select i.job, i.lease as asked, t.name as tenant, q.name as queue, j.kind, c.url as callback_url, j.trace,
  a.lease, a.attempt, a.how, w.name as worker, a.started_at, a.ended_at, v.error, v.result, v.usage,
  a.error is not null and v.error is null as error_omitted, a.result is not null and v.result is null as result_omitted, a.usage is not null and v.usage is null as usage_omitted
from unnest($1::uuid[], $2::bigint[]) with ordinality i (job, lease, ord)
join tenure.job j on j.id = i.job
join tenure.tenant t on t.id = j.tenant
join tenure.queue q on q.id = j.queue
left join tenure.job_callback c on c.job = j.id
left join tenure.attempt a on a.job = i.job and a.lease = i.lease
left join tenure.worker w on w.id = a.worker
cross join lateral (
  select tenure.json_text(a.error, $4) as error, tenure.json_text(a.result, $4) as result, tenure.json_text(a.usage, $4) as usage offset 0
) v
where j.kind = $3::text or exists (select from tenure.webhook_endpoint e where e.tenant = j.tenant and e.disabled_at is null)
order by i.ord
