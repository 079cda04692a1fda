-- find_delivery: a delivery with its endpoint and its event; zero rows: there is none, or it is another tenant's.
select d.status, d.webhook_endpoint_id, n.url, n.secret, n.previous_secret, n.previous_until, n.disabled_why,
       e.event_id, e.event_type, e.aggregate_type, e.aggregate_id, e.occurred_at, e.payload
from passport_webhook_delivery d
join passport_webhook_endpoint n on n.tenant_id = d.tenant_id and n.webhook_endpoint_id = d.webhook_endpoint_id
join passport_event e on e.tenant_id = d.tenant_id and e.event_id = d.event_id
where d.tenant_id = $1 and d.webhook_delivery_id = $2
