-- 0008_worker_registry: workers say what they do, and reports that came too late are written down.

-- What a worker said last. No index names these columns and every page keeps room, so that a beat is one small update in
-- place: nothing else is written and there is nothing to clean up later.
alter table tenure.worker
  set (fillfactor = 50),
  add column seen_at timestamptz,                   -- null: it never beat
  add column state text check (state in ('startup', 'connecting', 'recovery', 'polling', 'claiming', 'backoff', 'idle',
    'error_wait', 'draining', 'stopped')),
  add column running bigint check (running >= 0),
  add column reporting bigint check (reporting >= 0),
  add column version text,
  add column host text,
  add column pid bigint,
  add column queues text[] check (cardinality(queues) <= 100),
  add column slots bigint[],
  add constraint worker_beat_check check (num_nonnulls(seen_at, state, running, reporting, version, host, pid, queues, slots) in (0, 9)
    and cardinality(slots) = cardinality(queues));

create view tenure.workers as
select w.id, w.name, w.state, w.running, w.reporting, w.version, w.host, w.pid,
  (select string_agg(u.queue || '=' || u.slots, ', ' order by u.ord)
    from unnest(w.queues, w.slots) with ordinality u (queue, slots, ord)) as queues,
  w.registered_at, w.seen_at
from tenure.worker w;

-- event 20: refused, and from 21 on what happens to gates. Not validated: what is there has passed a narrower check, and reading a large journal under this
-- lock would stop everybody.
alter table tenure.journal
  drop constraint journal_event_check,
  add constraint journal_event_check check (event between 1 and 26 and event not in (10, 19)) not valid;

create or replace view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost', null, 'refused', 'gate_paused',
    'gate_resumed', 'gate_tripped', 'gate_reset', 'gate_healed', 'gate_ruled'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;
