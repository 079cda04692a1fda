-- list_endpoints.sql: webhook endpoints by id, a page or one.
-- Zero rows means that there are none after this id, or none in sight.
select webhook_endpoint.id, tenant.name, webhook_endpoint.url, webhook_endpoint.events, webhook_endpoint.prefix,
    webhook_endpoint.secret, webhook_endpoint.previous, webhook_endpoint.previous_until, webhook_endpoint.created_at,
    webhook_endpoint.disabled_at, webhook_endpoint.disabled_why, webhook_endpoint.failing_since,
    webhook_endpoint.listens_since
from webhook_endpoint
join tenant on tenant.id = webhook_endpoint.tenant
where (:sight is null or tenant.name = :sight)
  and (:id is null or webhook_endpoint.id = :id)
  and (:after is null or webhook_endpoint.id > :after)
order by webhook_endpoint.id
limit :limit;
