-- list_deliveries_of_endpoint.sql: deliveries to an endpoint, newest first. Zero rows: there are none, or it is out of sight.
--   $1 endpoint, $2 state, $3 since, $4 until, $5 from this id, $6 before this id, $7 limit, $8 tenant or null for all
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, d.callback_url, d.state, d.created_at, d.finished_at, d.resend_of,
  jsonb_array_length(d.tries) as tried
from tenure.webhook_delivery d
join tenure.tenant t on t.id = d.tenant
where d.endpoint = $1::uuid
  and ($2::smallint is null or d.state = $2)
  and ($3::timestamptz is null or d.created_at >= $3)
  and ($4::timestamptz is null or d.created_at < $4)
  and d.job >= $5::uuid and d.job < $6::uuid
  and ($8::text is null or t.name = $8)
order by d.endpoint desc, d.job desc
limit $7::bigint
