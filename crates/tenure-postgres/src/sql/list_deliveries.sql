-- list_deliveries.sql: deliveries, newest first. Zero rows: there are none, or none in sight.
--   $1 tenant or null for all, $2 endpoint, $3 state, $4 since, $5 until, $6 before this one, $7 limit
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, d.callback_url, d.state, d.created_at, d.finished_at, d.resend_of,
  jsonb_array_length(d.tries) as tried
from tenure.webhook_delivery d
join tenure.tenant t on t.id = d.tenant
where ($1::text is null or d.tenant = (select o.id from tenure.tenant o where o.name = $1))
  and ($2::uuid is null or d.endpoint = $2)
  and ($3::smallint is null or d.state = $3)
  and ($4::timestamptz is null or d.created_at >= $4)
  and ($5::timestamptz is null or d.created_at < $5)
  and ($6::uuid is null or d.job < $6)
order by d.job desc
limit $7::bigint
