-- find_key.sql: who holds a key, and by which policy.
-- Zero rows means that it is free.
select unique_key.job, unique_key.policy, unique_key.expires_at, unique_key.body
from unique_key
where unique_key.tenant = :tenant and unique_key.scope = :scope and unique_key.key = :key;
