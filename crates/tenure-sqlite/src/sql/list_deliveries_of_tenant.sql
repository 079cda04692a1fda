-- list_deliveries_of_tenant.sql: deliveries of a tenant, newest first.
-- Zero rows means that there are none.
select webhook_delivery.job, webhook_delivery.endpoint, tenant.name, webhook_delivery.event_id,
    webhook_delivery.event_type, webhook_delivery.subject, webhook_delivery.callback_url, webhook_delivery.state,
    webhook_delivery.created_at, webhook_delivery.finished_at, webhook_delivery.resend_of,
    json_array_length(webhook_delivery.tries)
from webhook_delivery
join tenant on tenant.id = webhook_delivery.tenant
where webhook_delivery.tenant = (select tenant.id from tenant where tenant.name = :sight)
  and (:state is null or webhook_delivery.state = :state)
  and (:since is null or webhook_delivery.created_at >= :since)
  and (:until is null or webhook_delivery.created_at < :until)
  and webhook_delivery.job >= :from and webhook_delivery.job < :before
order by webhook_delivery.tenant desc, webhook_delivery.job desc
limit :limit;
