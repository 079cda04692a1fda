-- put_cached.sql: keep an answer; what was there goes.
insert into cache (key, value, put_at, expires_at) values (:key, :value, :now, :expires_at)
on conflict (key) do update
set value = excluded.value, put_at = excluded.put_at, expires_at = excluded.expires_at;
