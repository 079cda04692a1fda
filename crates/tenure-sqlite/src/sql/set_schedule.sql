-- set_schedule.sql: make a schedule or change it. Its times begin anew where :anew says so.
insert into schedule (tenant, name, cron, zone, missed, grace_ms, queue, kind, payload, priority, gate, max_attempts,
    max_losses, backoff, last_at, look_at)
values (:tenant, :name, :cron, :zone, :missed, :grace_ms, :queue, :kind, :payload, :priority, :gate, :max_attempts,
    :max_losses, :backoff, :now, :now)
on conflict (tenant, name) do update set version = version + 1, cron = excluded.cron, zone = excluded.zone,
    missed = excluded.missed, grace_ms = excluded.grace_ms, queue = excluded.queue, kind = excluded.kind,
    payload = excluded.payload, priority = excluded.priority, gate = excluded.gate,
    max_attempts = excluded.max_attempts, max_losses = excluded.max_losses, backoff = excluded.backoff,
    last_at = iif(:anew, excluded.last_at, last_at), look_at = iif(:anew, excluded.look_at, look_at)
