-- 0018_pages: what the pages of the dashboard ask for.

-- Somebody who signed in with a key. Of the token only its SHA-256 is here: it is 256 random bits.
create table tenure.session (
  hash bytea primary key check (length(hash) = 32),
  key text collate "C" not null references tenure.api_key (id),
  began_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > began_at)
);
create index session_expires on tenure.session (expires_at);
create index session_key on tenure.session (key);

create or replace view tenure.audit_log as
select g.id, g.at, coalesce(w.name, g.actor) as who,
  (array['claimed', 'cancel_requested', 'requeued', 'opened', 'pruned', 'queue_paused', 'queue_resumed', 'journal_dropped',
    'rehomed', null, 'succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released', 'lost', null, 'refused', 'gate_paused',
    'gate_resumed', 'gate_tripped', 'gate_reset', 'gate_healed', 'gate_ruled', 'schedule_set', 'schedule_removed', 'schedule_paused',
    'schedule_resumed', 'run_created', 'run_sealed', 'run_ended', 'run_reopened', 'run_canceled', 'partition_resumed', 'partition_reset',
    'tenant_set', 'key_created', 'key_revoked', 'worker_ordered', 'endpoint_set', 'endpoint_removed', 'endpoint_disabled',
    'endpoint_pinged', 'deliveries_resent', 'hastened'])[g.event] as event,
  g.lease, u.job, g.reason, g.details
from tenure.journal g
left join tenure.worker w on w.id = g.worker
left join lateral unnest(g.jobs) u (job) on true;

-- Makes a delayed job or one that waits for its next try due now, and opens one that waits; answers whether it was not due
-- before. The new time is now: no claim's floor is above it.
create function tenure.hasten(job uuid, tenant text default null, actor text default null, reason text default null, now timestamptz default null)
  returns boolean language plpgsql as $$
declare
  moment timestamptz := coalesce(now, clock_timestamp());
  of_job uuid := job;
  found_job tenure.job;
  was smallint;
  state text;
begin
  perform tenure.check_text('reason', reason);
  found_job := tenure.find_job(of_job, tenant);
  for i in 1..3 loop
    select r.state into was from tenure.ready r where r.job = of_job and r.run_at > moment for update;
    if found then
      update tenure.ready r set state = case was when 2 then 0 else was end, run_at = moment where r.job = of_job;
      insert into tenure.journal (at, event, jobs, actor, reason)
        values (moment, case was when 2 then 4 else 47 end, array[of_job], coalesce(hasten.actor, session_user), hasten.reason);
      perform tenure.wake(q.name) from tenure.queue q where q.id = found_job.queue;
      return true;
    end if;
    if exists (select from tenure.ready r where r.job = of_job and r.run_at <= moment) then
      perform tenure.await_standbys();
      return false;
    end if;
    state := tenure.state_of(of_job);
    -- One that was put back meanwhile is met by the next round.
    if state not in ('waiting', 'queued', 'retryable') then
      raise exception 'job % cannot be hastened: it is %', of_job, state using errcode = 'TN409';
    end if;
  end loop;
  raise exception 'job % keeps changing hands', of_job using errcode = '40001';
end $$;

-- What people and rules did is rare among what workers write under their leases.
create index journal_acts on tenure.journal (id) where lease is null or worker is null;

-- An id above every journal row from before a moment, give or take a thousand: ids and times grow together, so halving
-- the way finds it in a few dozen looks.
create function tenure.journal_before(_at timestamptz) returns bigint language plpgsql stable as $$
declare
  low bigint := 0;
  high bigint := (select g.id + 1 from tenure.journal g order by g.id desc limit 1);
  middle bigint;
  met timestamptz;
begin
  while high - low > 1000 loop
    middle := (low + high) / 2;
    select g.at into met from tenure.journal g where g.id >= middle order by g.id limit 1;
    if met >= _at then high := middle; else low := middle; end if;
  end loop;
  return coalesce(high, 0);
end $$;
