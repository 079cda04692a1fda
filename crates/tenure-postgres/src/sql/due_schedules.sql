-- due_schedules.sql: schedules that have to be looked at, the longest due first; one row without an id when none has to.
-- `next_us` is how long until another one has to, null when none is to come.
--   $1 limit, $2 now or null for the clock
with moment as materialized (
  select coalesce($2::timestamptz, clock_timestamp()) as at
), next as (
  select (extract(epoch from s.look_at - m.at) * 1000000)::bigint as next_us from moment m cross join lateral (
    select s.look_at from tenure.schedule s where not s.paused and s.look_at > m.at order by s.look_at limit 1) s
), due as (
  select s.*, t.name as tenant_name from moment m cross join lateral (
    select s.* from tenure.schedule s where not s.paused and s.look_at <= m.at order by s.look_at, s.id limit $1::bigint
  ) s join tenure.tenant t on t.id = s.tenant
)
select d.id, d.version, d.tenant_name as tenant, d.name, d.cron, d.zone, d.missed, d.grace_ms, d.queue, d.kind, tenure.json_shown(d.payload) as payload, d.priority, d.gate,
  d.max_attempts, d.max_losses, d.backoff, d.paused, d.pause_reason, d.last_at, m.at as now, (select next_us from next) as next_us
from moment m left join due d on true
order by d.look_at, d.id
