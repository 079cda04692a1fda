-- hold_endpoint.sql: one endpoint, held until the transaction ends. Zero rows: there is none in sight.
--   $1 id, $2 tenant or null for all
select e.id, t.name as tenant, e.url, e.events, e.prefix, e.secret, e.previous, e.previous_until, e.created_at, e.listens_since, e.disabled_at, e.disabled_why, e.failing_since
from tenure.webhook_endpoint e
join tenure.tenant t on t.id = e.tenant
where e.id = $1::uuid and ($2::text is null or t.name = $2)
for no key update of e
