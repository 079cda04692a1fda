-- 0006_operate: cancel, requeue, open, prune. Usable by hand: select tenure.cancel('01933c5e-…', reason => 'duplicate order');
--
-- Whoever calls is written into the journal: the actor given, else the database role.

-- Refuses a job that does not exist or is out of sight, in the same words for both.
create function tenure.find_job(_job uuid, _tenant text) returns tenure.job language plpgsql stable as $$
declare j tenure.job; begin
  select * into j from tenure.job where id = _job;
  if not found or (_tenant is not null and _tenant is distinct from (select name from tenure.tenant where id = j.tenant)) then
    raise exception 'job % is not known here', _job using errcode = 'TN404';
  end if;
  return j;
end $$;

-- A job says to its run how it ended, or that it was revived. Most are part of none. A page that another one follows has
-- nothing to say, nor one that is not its partition's.
create function tenure.tell_run(_job uuid, _told smallint, _at timestamptz, _error jsonb default null) returns void language sql as $$
  insert into tenure.run_event (part, job, told, at, error)
  select j.part, j.id, _told, _at, _error from tenure.job j
  where j.id = _job and j.part is not null and (strpos(j.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = j.id) > 0)
$$;

-- Ends a waiting job at once; asks the holder of a running one, or fences it with force. Answers canceled, requested or before.
-- With force it may run in a transaction that stays open, so it holds the lease for key share: reclaim skips it then.
create function tenure.cancel(job uuid, force boolean default false, tenant text default null, actor text default null, reason text default null, now timestamptz default null)
  returns text language plpgsql as $$
declare
  moment timestamptz := coalesce(now, clock_timestamp());
  who text := coalesce(actor, session_user);
  of_job uuid := job;
  held bigint;
  state text;
begin
  perform tenure.check_text('reason', reason);
  perform tenure.find_job(of_job, tenant);
  for i in 1..3 loop
    with x as (
      delete from tenure.ready r where r.job = of_job returning r.job, r.attempt, r.losses
    ), a as (
      insert into tenure.attempt (job, lease, ended_at, attempt, losses, how, final)
      select x.job, tenure.draw_lease_no(), moment, x.attempt, x.losses, 5, true from x
      returning attempt.job, attempt.lease
    )
    insert into tenure.journal (at, event, lease, jobs, actor, reason) select moment, 15, a.lease, array[a.job], who, cancel.reason from a;
    if found then
      perform tenure.tell_run(of_job, 5::smallint, moment);
      return 'canceled';
    end if;
    state := tenure.state_of(of_job);
    if state = 'canceled' then
      perform tenure.await_standbys();
      return 'before';
    end if;
    if state in ('succeeded', 'failed', 'dead') then
      raise exception 'job % has ended already: it is %', of_job, state using errcode = 'TN409';
    end if;
    if not force then
      -- A job put back meanwhile is ended by the next round; one that passes unseen is ended by the claim that meets it.
      with q as (
        insert into tenure.cancel_request (job, requested_at, actor, reason) values (of_job, moment, who, cancel.reason) on conflict do nothing returning cancel_request.job
      )
      insert into tenure.journal (at, event, jobs, actor, reason) select moment, 2, array[q.job], who, cancel.reason from q;
      if tenure.state_of(of_job) = 'running' then
        perform tenure.await_standbys();
        return 'requested';
      end if;
      continue;
    end if;
    select l.no into held from tenure.lease l
      where of_job = any (l.jobs) and not exists (select from tenure.attempt a where a.job = of_job and a.lease = l.no)
      order by l.no for key share;
    continue when not found;
    with a as (
      insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, losses, how, final)
      select of_job, l.no, l.claimed_at, moment, l.worker, l.attempts[p], l.losses[p], 5, true
      from tenure.lease l cross join lateral array_position(l.jobs, of_job) p where l.no = held
      on conflict do nothing returning attempt.job, attempt.lease
    ), left_gate as (
      insert into tenure.gate_event (gate, lease, at)
      select l.gates[array_position(l.jobs, a.job)], a.lease, moment from a join tenure.lease l on l.no = a.lease where l.gates[array_position(l.jobs, a.job)] is not null
    )
    insert into tenure.journal (at, event, lease, jobs, actor, reason) select moment, 15, a.lease, array[a.job], who, cancel.reason from a;
    if found then
      perform tenure.tell_run(of_job, 5::smallint, moment);
      return 'canceled';
    end if;
  end loop;
  raise exception 'job % keeps changing hands', of_job using errcode = '40001';
end $$;

-- Revives a failed, dead or canceled job: attempts and losses start again, the fence does not. The key's row lock comes
-- first (an enqueue may be taking the key over), then the flag, whose row lock makes two requeues one.
create function tenure.requeue(job uuid, tenant text default null, actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(now, clock_timestamp());
  j tenure.job;
  holder uuid;
  was smallint;
  of_run tenure.run;
  refusal text;
begin
  perform tenure.check_text('reason', reason);
  j := tenure.find_job(requeue.job, requeue.tenant);
  if j.part is not null then
    -- Held so that nothing is decided about it meanwhile.
    select * into of_run from tenure.run r where r.id = left(j.part, 36)::uuid for no key update;
    -- tenure_core::run::Run::refuses_requeue
    refusal := case when of_run.state = 4 then 'its run was canceled'
      when of_run.consolidate = j.id then
        case when not of_run.sealed or of_run.done + of_run.failed + of_run.canceled < of_run.total or of_run.failed + of_run.canceled > of_run.tolerated
          then 'it runs by itself when all members of its run are there' end
      when of_run.fan >= 3 then 'the consolidate of its run has begun' end;
    if refusal is not null then
      raise exception 'job % cannot be requeued: %', j.id, refusal using errcode = 'TN409';
    end if;
  end if;
  if j.unique_key is not null then
    -- Another job had taken it and was pruned: it is free to be had again. (A window that is over needs no key.)
    insert into tenure.unique_key (tenant, scope, key, policy, job)
      select j.tenant, j.unique_scope, j.unique_key, j.unique_policy, j.id where j.unique_policy <> 4 on conflict do nothing;
    select k.job into holder from tenure.unique_key k where k.tenant = j.tenant and k.scope = j.unique_scope and k.key = j.unique_key for update;
    if holder <> j.id then
      raise exception 'job % cannot be requeued: its unique key `%` is held by job %', j.id, j.unique_key, holder using errcode = 'TN409';
    end if;
    -- A new version, not only a lock: an enqueue with an older snapshot must fail, not take over what it sees as ended. (Forever is never taken over.)
    update tenure.unique_key k set job = j.id where k.tenant = j.tenant and k.scope = j.unique_scope and k.key = j.unique_key and k.policy <> 3;
  end if;
  update tenure.attempt a set final = false where a.job = j.id and a.final and a.how in (3, 4, 5) returning a.how into was;
  if not found then
    raise exception 'job % cannot be requeued: it is %', j.id, tenure.state_of(j.id) using errcode = 'TN409';
  end if;
  delete from tenure.cancel_request c where c.job = j.id;
  insert into tenure.ready (run_at, job, queue, line, priority, kib) values (moment, j.id, j.queue, j.line, j.priority, j.kib);
  perform tenure.tell_run(j.id, (- was)::smallint, moment);
  insert into tenure.journal (at, event, jobs, actor, reason) values (moment, 3, array[j.id], coalesce(requeue.actor, session_user), requeue.reason);
  perform tenure.wake(q.name) from tenure.queue q where q.id = j.queue;
end $$;

-- Makes a waiting job due now.
create function tenure.open(job uuid, tenant text default null, actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(now, clock_timestamp());
  of_job uuid := job;
  found_job tenure.job;
begin
  found_job := tenure.find_job(of_job, tenant);
  update tenure.ready r set state = 0, run_at = moment where r.job = of_job and r.state = 2;
  if not found then
    raise exception 'job % cannot be opened: it is %', of_job, tenure.state_of(of_job) using errcode = 'TN409';
  end if;
  insert into tenure.journal (at, event, jobs, actor, reason) values (moment, 4, array[of_job], coalesce(open.actor, session_user), open.reason);
  perform tenure.wake(q.name) from tenure.queue q where q.id = found_job.queue;
end $$;

create function tenure.pause_queue(queue text, paused boolean default true, actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
begin
  perform tenure.check_name('queue', queue);
  perform tenure.check_text('reason', reason);
  update tenure.queue q set paused = pause_queue.paused where q.name = pause_queue.queue and q.paused <> pause_queue.paused;
  if not found then
    -- Either it is so already, or the name has a typing error.
    if not exists (select from tenure.queue q where q.name = pause_queue.queue) then
      raise exception 'queue % is not known here', pause_queue.queue using errcode = 'TN404';
    end if;
    perform tenure.await_standbys();
  else
    insert into tenure.journal (at, event, jobs, actor, reason, details)
    values (coalesce(now, clock_timestamp()), case when pause_queue.paused then 6 else 7 end, '{}', coalesce(actor, session_user), pause_queue.reason,
      jsonb_build_object('queue', pause_queue.queue));
  end if;
end $$;

-- Where the pruner looks next, in the order of attempts. The transaction that holds the row prunes; others leave.
create table tenure.prune_mark (
  job uuid not null,
  lease bigint not null
);
create unique index prune_mark_one on tenure.prune_mark ((true));
insert into tenure.prune_mark (job, lease) values ('00000000-0000-0000-0000-000000000000', 0);

-- Deletes a bounded batch of jobs that ended before _before, and of keys whose window is over. A job goes only when no lease
-- named by its attempts exists: a repeated report would be accepted anew, and reclaim would revive it. Freed keys go with
-- their holder, others stay.
--
-- Looks at a bounded number of attempts, from the mark on, in the order of ids. Ids begin with their time, so attempts of
-- younger jobs are never looked at; a job whose id was ahead of the store's clock, a day at most, is pruned so much later. `offset 0` keeps a look-up by key a look-up by key.
--
-- Runs with the rights of the schema's owner: no role may delete jobs and attempts but in this way, which leaves a row in the journal.
create function tenure.prune(_before timestamptz, _dead_too boolean, _limit int, _now timestamptz default null) returns int language plpgsql
  security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  looked_max constant int := 10000;
  mark record;
  walk record;
  gone uuid[];
  mine uuid[];
  moment timestamptz := coalesce(_now, clock_timestamp());
  too_young uuid := tenure.id_at(_before + interval '1 second');
begin
  select m.job, m.lease into mark from tenure.prune_mark m for update skip locked;
  if not found then return 0; end if;

  delete from tenure.unique_key k where k.ctid = any (array(
    select o.ctid from tenure.unique_key o where o.expires_at < moment order by o.expires_at limit _limit for update skip locked));

  with looked as materialized (
    select a.job, a.lease, a.how, a.final, a.ended_at from tenure.attempt a
    where (a.job, a.lease) > (mark.job, mark.lease) and a.job < too_young
    order by a.job, a.lease limit looked_max
  ), found as materialized (
    select c.job, c.lease from looked c
    where c.final and c.ended_at <= _before and (c.how <> 4 or _dead_too)
      and not exists (select from tenure.attempt b cross join lateral (select from tenure.lease l where l.no = b.lease offset 0) held where b.job = c.job offset 0)
      -- What a run may yet revive.
      and not exists (select from tenure.partition p where p.job = c.job and p.state <> 2 offset 0)
      and not exists (select from tenure.run r where r.consolidate = c.job and r.state in (0, 1, 3) offset 0)
    order by c.job, c.lease limit _limit
  ), locked as (
    select a.job from found f
    cross join lateral (select o.job from tenure.attempt o where o.job = f.job and o.lease = f.lease for update skip locked) a
  )
  select (select array_agg(l.job order by l.job) from locked l) as jobs,
    (select count(*) from found) as found, (select count(*) from looked) as looked,
    o.job, o.lease
  into walk
  from (select 1) one
  left join lateral (
    (select f.job, f.lease from found f where (select count(*) from found) = _limit order by f.job desc, f.lease desc limit 1)
    union all
    (select k.job, k.lease from looked k where (select count(*) from found) < _limit order by k.job desc, k.lease desc limit 1)
  ) o on true;
  if walk.found = _limit or walk.looked = looked_max then
    update tenure.prune_mark set job = walk.job, lease = walk.lease;
  elsif mark.lease <> 0 or mark.job <> '00000000-0000-0000-0000-000000000000' then
    update tenure.prune_mark set job = '00000000-0000-0000-0000-000000000000', lease = 0;
  end if;
  gone := walk.jobs;
  if gone is null then return 0; end if;
  -- Look again: a requeue that was committed after the statement above began has cleared the flag.
  select array_agg(a.job) into gone from tenure.attempt a where a.job = any (gone) and a.final;
  if gone is null then return 0; end if;
  -- The keys they hold are locked, never waited for: a requeue has its key and waits for the attempt locked above. That job goes next time.
  select array_agg(l.job) into mine from (
    select k.job from tenure.job j join tenure.unique_key k on k.tenant = j.tenant and k.scope = j.unique_scope and k.key = j.unique_key and k.job = j.id
    where j.id = any (gone) for update of k skip locked
  ) l;
  select array_agg(j.id) into gone from tenure.job j
    where j.id = any (gone) and (j.id = any (coalesce(mine, '{}'))
      or not exists (select from tenure.unique_key k where k.tenant = j.tenant and k.scope = j.unique_scope and k.key = j.unique_key and k.job = j.id));
  if gone is null then return 0; end if;
  delete from tenure.unique_key k using tenure.job j
    where j.id = any (gone) and k.tenant = j.tenant and k.scope = j.unique_scope and k.key = j.unique_key and k.job = j.id
      and case k.policy when 1 then true when 2 then tenure.state_of(k.job) <> 'succeeded' when 3 then false else k.expires_at < moment end;
  delete from tenure.cancel_request c where c.job = any (gone);
  delete from tenure.job_callback c where c.job = any (gone);
  delete from tenure.webhook_delivery d where d.job = any (gone);
  delete from tenure.operation o where o.id = any (gone);
  delete from tenure.attempt a where a.job = any (gone);
  delete from tenure.job j where j.id = any (gone);
  insert into tenure.journal (at, event, jobs) values (moment, 5, gone);
  return cardinality(gone);
end $$;
revoke execute on function tenure.prune(timestamptz, boolean, int, timestamptz) from public;
