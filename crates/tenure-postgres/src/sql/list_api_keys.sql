-- list_api_keys.sql: keys by id, or one; those that have ended only when asked for. Zero rows: there is none, or it is out of sight.
--   $1 id, $2 tenant that sees them, $3 also those that have ended, $4 after, $5 limit, $6 now or null for the clock
select k.id, k.hash, t.name as tenant, k.name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.used_at
from tenure.api_key k left join tenure.tenant t on t.id = k.tenant
where ($1::text is null or k.id = $1::text)
  and ($2::text is null or t.name = $2::text)
  and ($3::boolean or k.revoked_at is null and (k.expires_at is null or k.expires_at > coalesce($6::timestamptz, clock_timestamp())))
  and ($4::text is null or k.id > $4::text)
order by k.id
limit $5::bigint
