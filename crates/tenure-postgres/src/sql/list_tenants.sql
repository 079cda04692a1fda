-- list_tenants.sql: tenants by name, or one, with the number of keys that are good now. Zero rows: there is none.
--   $1 name, $2 after, $3 limit, $4 now or null for the clock
select t.name, t.quota, (select count(*) from tenure.api_key k where k.tenant = t.id and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > coalesce($4::timestamptz, clock_timestamp()))) as keys
from tenure.tenant t
where ($1::text is null or t.name = $1::text) and ($2::text is null or t.name collate "C" > $2::text)
order by t.name collate "C"
limit $3::bigint
