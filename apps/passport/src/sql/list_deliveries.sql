-- list_deliveries: a tenant's deliveries, newest first; zero rows: nothing was to be told.
select webhook_delivery_id, webhook_endpoint_id, event_id, job_id, status, attempts, http_status, response_headers,
       response_body, error_message, created_at, delivered_at
from passport_webhook_delivery
where tenant_id = $1
order by created_at desc, webhook_delivery_id
limit $2
