-- show_delivery.sql: one delivery in full.
-- Zero rows means that there is none in sight.
select webhook_delivery.job, webhook_delivery.endpoint, tenant.name, webhook_delivery.event_id,
    webhook_delivery.event_type, webhook_delivery.subject, webhook_delivery.callback_url, webhook_delivery.state,
    webhook_delivery.created_at, webhook_delivery.finished_at, webhook_delivery.resend_of,
    json_array_length(webhook_delivery.tries),
    webhook_delivery.tries, webhook_delivery.body, webhook_delivery.journal
from webhook_delivery
join tenant on tenant.id = webhook_delivery.tenant
where webhook_delivery.job = :job
  and (:sight is null or tenant.name = :sight);
