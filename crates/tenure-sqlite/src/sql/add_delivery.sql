-- add_delivery.sql: a delivery for an endpoint that gets something.
-- Zero changes means that it is there already, or that the endpoint gets nothing.
insert into webhook_delivery
    (job, endpoint, tenant, journal, subject, event_id, event_type, callback_url, created_at, resend_of, body)
select :job, webhook_endpoint.id, webhook_endpoint.tenant, :journal, :subject, :event_id, :event_type, :callback_url,
    :now, :resend_of, :body
from webhook_endpoint
where webhook_endpoint.id = :endpoint and webhook_endpoint.disabled_at is null
on conflict do nothing;
