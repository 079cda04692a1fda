-- count_usable_keys.sql: how many keys of a tenant can be used now.
select count(*) from api_key
where api_key.tenant = :tenant
    and api_key.revoked_at is null
    and (api_key.expires_at is null or api_key.expires_at > :now)
