-- add_deliveries.sql: store deliveries for endpoints that get something; one row for each that is new.
--   $1 jobs, $2 endpoints, $3 journal rows, $4 subjects, $5 event ids, $6 event types, $7 callback urls, $8 bodies, $9 repeated deliveries, $10 now
insert into tenure.webhook_delivery as d (job, endpoint, tenant, journal, subject, event_id, event_type, callback_url, created_at, resend_of, body)
select i.job, e.id, e.tenant, i.journal, i.subject, i.event_id, i.event_type, i.callback_url, $10, i.resend_of, i.body
from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::uuid[])
  with ordinality i (job, endpoint, journal, subject, event_id, event_type, callback_url, body, resend_of, ord)
join tenure.webhook_endpoint e on e.id = i.endpoint and e.disabled_at is null
order by i.ord
on conflict do nothing
returning d.job, d.endpoint, (select t.name from tenure.tenant t where t.id = d.tenant) as tenant
