-- begin_session.sql: begin a session of a key, and delete some that are over. One row: began (also by this very request
-- before), taken by another key's session, full where the key's tenant has as many as it may, or null: there is no such key.
--   $1 hash, $2 key, $3 how long in ms, $4 delete at most so many, $5 now or null for the clock, $6 most sessions of a tenant
with owner as (
  select k.id, k.tenant, t.name, at from tenure.api_key k left join tenure.tenant t on t.id = k.tenant
  cross join coalesce($5::timestamptz, clock_timestamp()) at where k.id = $2::text
), gone as (
  delete from tenure.session s where s.hash = any (array(
    select o.hash from tenure.session o where o.expires_at <= coalesce($5::timestamptz, clock_timestamp()) and o.hash <> $1
    order by o.expires_at limit $4::bigint for update skip locked))
), others as (
  select count(*) as count from owner w join tenure.api_key k on k.tenant = w.tenant and k.revoked_at is null
  join tenure.session s on s.key = k.id and s.expires_at > w.at and s.hash <> $1
), began as (
  insert into tenure.session (hash, key, began_at, expires_at)
  select $1::bytea, w.id, w.at, w.at + $3::bigint * interval '1 ms'
  from owner w where (select count from others) < $6::bigint
  on conflict do nothing
  returning key
)
select case when exists (select from began) then 'began'
    when s.key is not null then case when s.key = $2 then 'began' else 'taken' end
    when w.id is not null then 'full' end as answer, w.name as tenant
from (values (1)) one (row) left join owner w on true left join tenure.session s on s.hash = $1
