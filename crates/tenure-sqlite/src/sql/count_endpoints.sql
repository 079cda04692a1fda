-- count_endpoints.sql: how many webhook endpoints a tenant has, and how many of them are for callbacks.
select count(*), count(*) - count(webhook_endpoint.url)
from webhook_endpoint
where webhook_endpoint.tenant = :tenant;
