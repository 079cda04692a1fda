-- 0003_cache.sql: answers that are kept for a while.
create table cache (
    key text not null primary key check (length(key) between 1 and 500),
    value text not null check (length(cast(value as blob)) <= 1048576 and json_valid(value)),
    put_at integer not null,
    expires_at integer not null
) strict;
create index cache_expires on cache (expires_at);
create index cache_put on cache (put_at, key);
