-- list_endpoints.sql: endpoints by id, a page or one. Zero rows: there are none after this id, or none in sight.
--   $1 tenant or null for all, $2 one id, $3 after this id, $4 limit
select e.id, t.name as tenant, e.url, e.events, e.prefix, e.secret, e.previous, e.previous_until, e.created_at, e.listens_since, e.disabled_at, e.disabled_why, e.failing_since
from tenure.webhook_endpoint e
join tenure.tenant t on t.id = e.tenant
where ($1::text is null or t.name = $1) and ($2::uuid is null or e.id = $2) and ($3::uuid is null or e.id > $3)
order by e.id
limit $4::bigint
