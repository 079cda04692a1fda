-- forget_cached.sql: an answer goes.
-- Zero rows means that there was none.
delete from cache where cache.key = :key;
