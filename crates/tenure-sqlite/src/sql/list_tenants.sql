-- list_tenants.sql: tenants by name, or one, with the number of keys that are good now.
-- Zero rows means that there are none after this name, or none of this name.
select tenant.name, tenant.quota, (
    select count(*) from api_key
    where api_key.tenant = tenant.id and api_key.revoked_at is null
        and (api_key.expires_at is null or api_key.expires_at > :now)
)
from tenant
where tenant.name > coalesce(:after, '') and tenant.name = coalesce(:name, tenant.name)
order by tenant.name
limit :limit;
