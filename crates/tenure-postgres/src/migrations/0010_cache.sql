-- 0010_cache: answers that are kept for a while. Unlogged: losing them in a crash costs a call each, and writing them
-- twice costs more. A standby has none of them.
create unlogged table tenure.cache (
  key text collate "C" primary key check (octet_length(key) between 1 and 500),
  value jsonb not null,
  put_at timestamptz not null,
  expires_at timestamptz not null
);
create index cache_expires on tenure.cache (expires_at);
create index cache_put on tenure.cache (put_at, key);
