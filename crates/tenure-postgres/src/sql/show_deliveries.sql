-- show_deliveries.sql: deliveries in full. A missing row: there is none in sight.
--   $1 which, $2 tenant or null for all
select d.job, d.endpoint, t.name as tenant, d.event_id, d.event_type, d.subject, d.callback_url, d.state, d.created_at, d.finished_at, d.resend_of,
  jsonb_array_length(d.tries) as tried, d.tries::text as tries, d.body, d.journal
from tenure.webhook_delivery d
join tenure.tenant t on t.id = d.tenant
where d.job = any ($1::uuid[]) and ($2::text is null or t.name = $2)
