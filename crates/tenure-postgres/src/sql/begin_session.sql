-- begin_session.sql: begin a session of a key, and delete some that are over. One row: began (also by this very request
-- before), taken by another key's session, or null: there is no such key.
--   $1 hash, $2 key, $3 how long in ms, $4 delete at most so many, $5 now or null for the clock
with gone as (
  delete from tenure.session s where s.hash = any (array(
    select o.hash from tenure.session o where o.expires_at <= coalesce($5::timestamptz, clock_timestamp()) and o.hash <> $1
    order by o.expires_at limit $4::bigint for update skip locked))
), began as (
  insert into tenure.session (hash, key, began_at, expires_at)
  select $1::bytea, k.id, at, at + $3::bigint * interval '1 ms'
  from tenure.api_key k cross join coalesce($5::timestamptz, clock_timestamp()) at where k.id = $2::text
  on conflict do nothing
  returning key
)
select case when exists (select from began) then 'began'
  else (select case when s.key = $2 then 'began' else 'taken' end from tenure.session s where s.hash = $1) end as answer
