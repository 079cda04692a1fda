-- count_sessions.sql: how many sessions a tenant has, those of revoked keys not counted.
select count(*)
from api_key
join session on session.key = api_key.id
where api_key.tenant = :tenant
    and api_key.revoked_at is null
    and session.expires_at > :now
