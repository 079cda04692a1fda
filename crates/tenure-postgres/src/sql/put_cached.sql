-- put_cached.sql: keep an answer; what was there goes.
--   $1 key, $2 value, $3 ttl in ms, $4 now or null for the clock
insert into tenure.cache (key, value, put_at, expires_at)
select $1::text, $2::text::jsonb, at, at + $3::bigint * interval '1 ms' from coalesce($4::timestamptz, clock_timestamp()) at
on conflict (key) do update set value = excluded.value, put_at = excluded.put_at, expires_at = excluded.expires_at
