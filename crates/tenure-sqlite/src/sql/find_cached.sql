-- find_cached.sql: an answer that is still good.
-- Zero rows means that there is none.
select cache.value, cache.expires_at from cache where cache.key = :key and cache.expires_at > :now;
