-- find_api_key.sql: a key, also one that has ended.
-- Zero rows means that there is none of this id, or that it is out of sight.
select api_key.id, api_key.hash, tenant.name, api_key.name, api_key.scopes, api_key.created_at, api_key.expires_at,
    api_key.revoked_at, api_key.used_at
from api_key
left join tenant on tenant.id = api_key.tenant
where api_key.id = :id
and (:sight is null or tenant.name = :sight);
