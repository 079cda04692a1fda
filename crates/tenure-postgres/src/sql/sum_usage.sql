-- sum_usage.sql: what was used, the newest day first. Zero rows: nobody reported any usage since.
--   $1 tenant that sees it, $2 kind, $3 since, $4 limit
--   $5 day, $6 tenant, $7 kind and $8 name of the last one of the page before
select u.day, u.tenant, u.kind, u.name, u.amount, u.attempts, extract(epoch from u.day)::bigint as day_seconds
from tenure.usages u
where ($1::text is null or u.tenant = $1::text)
  and ($2::text is null or u.kind = $2::text)
  and u.day >= ($3::timestamptz at time zone 'UTC')::date
  and (
    $5::timestamptz is null
    or u.day < ($5::timestamptz at time zone 'UTC')::date
    or u.day = ($5::timestamptz at time zone 'UTC')::date
      and (u.tenant collate "C", u.kind collate "C", u.name collate "C") > ($6::text, $7::text, $8::text)
  )
order by u.day desc, u.tenant collate "C", u.kind collate "C", u.name collate "C"
limit $4::bigint
