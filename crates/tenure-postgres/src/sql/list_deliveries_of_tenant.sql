-- list_deliveries_of_tenant.sql: deliveries of a tenant, newest first. Zero rows: there are none. The order is that of an index, so
-- that no plan walks over everybody's.
--   $1 tenant, $2 state, $3 since, $4 until, $5 from this id, $6 before this id, $7 limit
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, d.callback_url, d.state, d.created_at, d.finished_at, d.resend_of,
  jsonb_array_length(d.tries) as tried
from tenure.webhook_delivery d
join tenure.tenant t on t.id = d.tenant
where d.tenant = (select o.id from tenure.tenant o where o.name = $1::text)
  and ($2::smallint is null or d.state = $2)
  and ($3::timestamptz is null or d.created_at >= $3)
  and ($4::timestamptz is null or d.created_at < $4)
  and d.job >= $5::uuid and d.job < $6::uuid
order by d.tenant desc, d.job desc
limit $7::bigint
