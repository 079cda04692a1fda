-- 0007_lease: what takes leases back, and completion inside a user's own transaction.

-- How long a job waits after its n-th lost lease: not at all, then 1 s doubling up to 5 minutes (tenure_core::apply::loss_delay).
create function tenure.loss_delay(_losses int) returns interval language sql immutable parallel safe as $$
  select case when _losses < 2 then interval '0' else least(300, 1 << least(_losses - 2, 9)) * interval '1 s' end
$$;

-- Takes back what expired leases held. Leases that somebody has locked (a user's open completion) are skipped, not waited
-- for; what was inserted decides what follows. The second statement sees everything committed before the locks were had.
-- Counts and `offset 0` keep both look-ups by key under a plan that was made while the tables were empty.
create function tenure.reclaim(_by int, _leases_max int, _now timestamptz default null)
  returns table (job uuid, lease bigint, worker text, how smallint) language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  gone bigint[];
begin
  select array_agg(s.no) into gone from (
    select l.no from tenure.lease l where l.expires_at < moment order by l.no limit _leases_max for update skip locked
  ) s;
  if gone is null then return; end if;
  return query
  with held as materialized (
    select u.job, u.attempt, (u.losses + 1)::smallint as losses, u.gate, l.no, l.worker, l.claimed_at
    from tenure.lease l cross join lateral unnest(l.jobs, l.attempts, l.losses, l.gates) u (job, attempt, losses, gate)
    where l.no = any (gone) and (select count(*) from tenure.attempt a where a.job = u.job and a.lease = l.no) = 0
  ), decided as materialized (
    select h.*,
      (case when exists (select from tenure.cancel_request c where c.job = h.job) and h.losses < j.max_losses then 5
            when h.losses >= j.max_losses then 4 else 8 end)::smallint as ending, j.part
    from held h cross join lateral (select * from tenure.job j where j.id = h.job offset 0) j
  ), ended as (
    insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final, error)
    select d.job, d.no, d.claimed_at, moment, d.worker, d.attempt, d.losses, d.ending, d.ending in (4, 5),
      jsonb_build_object('code', 'lease_lost', 'message', format('lease %s of worker %s expired without a report', d.no, coalesce(w.name, d.worker::text)))
    from decided d left join tenure.worker w on w.id = d.worker order by d.job
    on conflict do nothing
    returning attempt.job, attempt.lease, attempt.how, attempt.attempt, attempt.losses, attempt.worker, attempt.error
  ), again as (
    insert into tenure.ready (run_at, job, queue, line, priority, attempt, losses, state, kib)
    select moment + tenure.loss_delay(e.losses), e.job, j.queue, j.line, j.priority, e.attempt - 1, e.losses, 0, j.kib
    from ended e cross join lateral (select * from tenure.job j where j.id = e.job offset 0) j where e.how = 8
  ), left_gate as (
    insert into tenure.gate_event (gate, lease, at)
    select d.gate, e.lease, moment from ended e join decided d on d.job = e.job and d.no = e.lease where d.gate is not null
  ), told as (
    insert into tenure.run_event (part, job, told, at, error)
    select d.part, e.job, e.how, moment, e.error from ended e join decided d on d.job = e.job and d.no = e.lease
    where d.part is not null and e.how in (4, 5) and (strpos(d.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
  ), dropped as (
    delete from tenure.lease l where l.no = any (gone)
  ), noted as (
    insert into tenure.journal (at, worker, event, lease, jobs, details)
    select moment, _by, 10 + e.how, e.lease, array_agg(e.job), jsonb_build_object('reclaimed', true) from ended e group by e.lease, e.how
  )
  select e.job, e.lease, w.name, e.how from ended e left join tenure.worker w on w.id = e.worker;
end $$;

-- Gives back, uncharged, what a worker holds under leases it does not know: claims whose reply was lost.
create function tenure.release_unknown(_worker int, _known bigint[], _newest bigint, _now timestamptz default null) returns setof uuid language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  gone bigint[];
begin
  select array_agg(s.no) into gone from (
    select l.no from tenure.lease l where l.worker = _worker and l.no <> all (_known) and l.no <= _newest order by l.no for update skip locked
  ) s;
  if gone is null then return; end if;
  return query
  with held as materialized (
    select u.job, u.attempt, u.losses, u.gate, l.no, l.claimed_at
    from tenure.lease l cross join lateral unnest(l.jobs, l.attempts, l.losses, l.gates) u (job, attempt, losses, gate)
    where l.no = any (gone) and (select count(*) from tenure.attempt a where a.job = u.job and a.lease = l.no) = 0
  ), decided as materialized (
    select h.*, (case when exists (select from tenure.cancel_request c where c.job = h.job) then 5 else 7 end)::smallint as ending
    from held h
  ), ended as (
    insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final)
    select d.job, d.no, d.claimed_at, moment, _worker, d.attempt, d.losses, d.ending, d.ending = 5 from decided d order by d.job
    on conflict do nothing
    returning attempt.job, attempt.lease, attempt.how, attempt.attempt, attempt.losses
  ), again as (
    insert into tenure.ready (run_at, job, queue, line, priority, attempt, losses, state, kib)
    select moment, e.job, j.queue, j.line, j.priority, e.attempt - 1, e.losses, 0, j.kib
    from ended e cross join lateral (select * from tenure.job j where j.id = e.job offset 0) j where e.how = 7
  ), left_gate as (
    insert into tenure.gate_event (gate, lease, at)
    select d.gate, e.lease, moment from ended e join decided d on d.job = e.job and d.no = e.lease where d.gate is not null
  ), told as (
    insert into tenure.run_event (part, job, told, at)
    select j.part, e.job, 5, moment from ended e cross join lateral (select * from tenure.job j where j.id = e.job offset 0) j
    where e.how = 5 and j.part is not null and (strpos(j.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
  ), dropped as (
    delete from tenure.lease l where l.no = any (gone)
  ), noted as (
    insert into tenure.journal (at, worker, event, lease, jobs) select moment, _worker, 10 + e.how, e.lease, array_agg(e.job) from ended e group by e.lease, e.how
  )
  select e.job from ended e;
end $$;

-- Completes a job inside the caller's own transaction: its rows and the completion commit together or not at all. A stale
-- lease raises TN001 and a repeated completion TN002, so that the transaction can only be rolled back.
--
-- The lease is held for key share, so that renewal goes on and reclaim skips it while the transaction is open. A
-- transaction that stalls is ended by the server when the lease would have ended: its idle timeout is set for that, never
-- to 0 (that would switch it off), never above what the user has set.
--
-- _health and _hold_ms are what the holder says of its gate: 1 it did well, 2 it did not, null it was not asked; and for how
-- long it wants silence, a day at most.
create function tenure.complete_in(
  _worker int, _lease bigint, _job uuid, _result jsonb default null, _usage jsonb default null, _now timestamptz default null, _health int default 1,
  _hold_ms bigint default null)
  returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  left_ms bigint;
  set_ms bigint;
begin
  if _result is not null then perform tenure.check_json('result', _result, 1048576); end if;
  if _usage is not null then perform tenure.check_usage(_usage); end if;
  select greatest(1, least(extract(epoch from l.expires_at - moment) * 1000, 86400000))::bigint into left_ms
    from tenure.lease l where l.no = _lease and l.worker = _worker for key share;
  if found then
    select nullif(setting::bigint, 0) into set_ms from pg_settings where name = 'idle_in_transaction_session_timeout';
    perform set_config('idle_in_transaction_session_timeout', least(left_ms, set_ms)::text, true);
  end if;
  with a as (
    insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final, result, usage)
    select _job, l.no, l.claimed_at, moment, _worker, l.attempts[p], l.losses[p], 1, true, _result, _usage
    from tenure.lease l cross join lateral array_position(l.jobs, _job) p
    where l.no = _lease and l.worker = _worker and p is not null
    on conflict do nothing returning attempt.job
  ), left_gate as (
    insert into tenure.gate_event (gate, lease, at, health, hold_until)
    select l.gates[array_position(l.jobs, a.job)], _lease, moment, _health, moment + case when _hold_ms > 86400000 then 86400000 else _hold_ms end * interval '1 ms' from a join tenure.lease l on l.no = _lease where l.gates[array_position(l.jobs, a.job)] is not null
  )
  insert into tenure.journal (at, worker, event, lease, jobs) select moment, _worker, 11, _lease, array[a.job] from a;
  if found then
    perform tenure.tell_run(_job, 1::smallint, moment);
    if _usage is not null then
      insert into tenure.usage_event (at, tenant, kind, usage) select moment, j.tenant, j.kind, _usage from tenure.job j where j.id = _job;
    end if;
    return;
  end if;
  if exists (select from tenure.attempt a where a.job = _job and a.lease = _lease and a.how = 1) then
    raise exception 'job % was completed before under lease %: this transaction must not commit its effects again', _job, _lease using errcode = 'TN002';
  end if;
  raise exception 'lease % no longer holds job %: this transaction must not commit', _lease, _job using errcode = 'TN001';
end $$;
