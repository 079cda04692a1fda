-- list_api_keys.sql: keys by id, those that have ended only when asked for.
-- Zero rows means that there are none after this id.
select api_key.id, api_key.hash, tenant.name, api_key.name, api_key.scopes, api_key.created_at, api_key.expires_at,
    api_key.revoked_at, api_key.used_at
from api_key
left join tenant on tenant.id = api_key.tenant
where api_key.id > coalesce(:after, '')
and (:sight is null or tenant.name = :sight)
and (:ended_too or api_key.revoked_at is null and coalesce(api_key.expires_at > :now, 1))
order by api_key.id
limit :limit;
