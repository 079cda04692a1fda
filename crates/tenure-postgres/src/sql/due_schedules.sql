-- due_schedules.sql: due schedules, tenants in turn: the longest due of each tenant, then the second of each, and so on;
-- one row without an id when none is due. Only the $3 longest due are ranked, without their payloads.
-- `next_us` is how long until another one is due, null when none is to come.
--   $1 limit, $2 now or null for the clock, $3 how many to rank
with moment as materialized (
  select coalesce($2::timestamptz, clock_timestamp()) as at
), next as (
  select (extract(epoch from s.look_at - m.at) * 1000000)::bigint as next_us from moment m cross join lateral (
    select s.look_at from tenure.schedule s where not s.paused and s.look_at > m.at order by s.look_at limit 1) s
), due as (
  select s.id, s.tenant, s.look_at from moment m cross join lateral (
    select s.id, s.tenant, s.look_at from tenure.schedule s where not s.paused and s.look_at <= m.at order by s.look_at, s.id limit $3::bigint
  ) s
), page as (
  select r.id, r.turn from (
    select d.id, d.look_at, row_number() over (partition by d.tenant order by d.look_at, d.id) as turn from due d) r
  order by r.turn, r.look_at, r.id limit $1::bigint
), read as (
  select p.turn, s.id, s.version, s.name, s.cron, s.zone, s.missed, s.grace_ms, s.queue, s.kind, s.payload, s.priority, s.gate,
    s.max_attempts, s.max_losses, s.backoff, s.paused, s.pause_reason, s.last_at, s.look_at, t.name as tenant_name
  from page p join tenure.schedule s on s.id = p.id join tenure.tenant t on t.id = s.tenant
)
select d.id, d.version, d.tenant_name as tenant, d.name, d.cron, d.zone, d.missed, d.grace_ms, d.queue, d.kind, tenure.json_shown(d.payload) as payload, d.priority, d.gate,
  d.max_attempts, d.max_losses, d.backoff, d.paused, d.pause_reason, d.last_at, m.at as now, (select next_us from next) as next_us
from moment m left join read d on true
order by d.turn, d.look_at, d.id
