-- list_schedules.sql: schedules by tenant and name, a page or one. Zero rows: there is none.
--   $1 only this tenant's, or null; $2 only this name, or null; $3, $4 after this tenant and name, or null; $5 limit; $6 now or null for the clock
select s.id, s.version, t.name as tenant, s.name, s.cron, s.zone, s.missed, s.grace_ms, s.queue, s.kind, tenure.json_shown(s.payload) as payload, s.priority, s.gate,
  s.max_attempts, s.max_losses, s.backoff, s.paused, s.pause_reason, s.last_at, coalesce($6::timestamptz, clock_timestamp()) as now
from tenure.schedule s join tenure.tenant t on t.id = s.tenant
where ($1::text is null or t.name = $1) and ($2::text is null or s.name = $2)
  and ($3::text is null or (t.name collate "C", s.name) > ($3, $4::text))
order by t.name collate "C", s.name limit $5::bigint
