-- list_deliveries.sql: everybody's deliveries, newest first. Zero rows: there are none.
--   $1 state, $2 since, $3 until, $4 from this id, $5 before this id, $6 limit
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, d.callback_url, d.state, d.created_at, d.finished_at, d.resend_of,
  jsonb_array_length(d.tries) as tried
from tenure.webhook_delivery d
join tenure.tenant t on t.id = d.tenant
where ($1::smallint is null or d.state = $1)
  and ($2::timestamptz is null or d.created_at >= $2)
  and ($3::timestamptz is null or d.created_at < $3)
  and d.job >= $4::uuid and d.job < $5::uuid
order by d.job desc
limit $6::bigint
