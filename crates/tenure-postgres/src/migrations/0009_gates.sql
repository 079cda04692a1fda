-- 0009_gates: what shared resources let through, and the claim of queues with lines.
--
-- The rules are those of tenure_core::gate, with the same whole numbers; the scripts of the contract suite hold the two
-- equal. A gate's row is only ever written under its lock, which the claim takes or skips; endings insert events.

-- The gate of a line, null where it has none (tenure_core::line).
create function tenure.line_gate(_line text) returns text language sql immutable parallel safe as $$
  select case when strpos(_line, '/') > 0 then substr(_line, strpos(_line, '/') + 1) end
$$;

-- The pattern of the rule a gate obeys: its own name, else its longest beginning.
create function tenure.rule_of(_gate text) returns text language sql stable as $$
  select r.pattern from tenure.gate_rule r
  where r.pattern = any (array(select _gate union all select left(_gate, n) || '*' from generate_series(0, length(_gate)) n))
  order by r.pattern = _gate desc, length(r.pattern) desc limit 1
$$;

-- The share of a line: its gate's, or what a rule for `tenant:<name>` says of a tenant's own.
create function tenure.line_weight(_line text) returns int language sql stable as $$
  select coalesce((select r.weight from tenure.gate_rule r where r.pattern = tenure.rule_of(coalesce(tenure.line_gate(_line),
    (select 'tenant:' || t.name from tenure.tenant t where t.id = case when _line ~ '^[0-9]{1,9}$' then _line::int end)))), 1)
$$;

create function tenure.micros(_time interval) returns bigint language sql immutable parallel safe as $$
  select (extract(epoch from _time) * 1000000)::bigint
$$;

-- Taken by whoever enters a new gate.
create function tenure.gate_lock(_gate text) returns bigint language sql immutable parallel safe as $$
  select hashtextextended(_gate, 7400)
$$;

-- What a gate lets through: jobs (null: as many as you like), or why nothing and until when (null: nobody knows).
create type tenure.admission as (jobs bigint, why text, until timestamptz);

create function tenure.admit(g tenure.gate, r tenure.gate_rule, _now timestamptz) returns tenure.admission language plpgsql stable as $$
declare
  forever constant timestamptz := '9999-12-30Z';
  jobs bigint;
  tokens bigint;
begin
  if g.paused_until > _now then return row(0, 'paused', nullif(g.paused_until, forever))::tenure.admission; end if;
  if g.held_until > _now then return row(0, 'held', g.held_until)::tenure.admission; end if;
  if g.open_until > _now then return row(0, 'open', nullif(g.open_until, forever))::tenure.admission; end if;
  if g.open_until is not null and r.breaker_failures is not null then
    if g.probe is not null then return row(0, 'probing', null)::tenure.admission; end if;
    jobs := 1;
  end if;
  if g.in_use >= r.concurrency then return row(0, 'full', null)::tenure.admission; end if;
  jobs := least(jobs, r.concurrency - g.in_use);
  if r.rate_count is not null then
    -- Numeric: a bucket that a slow rule has emptied for years may be under a fast one now.
    tokens := floor(greatest(r.rate_burst * r.rate_period_ms * 1000 - greatest(tenure.micros(g.full_at - _now), 0)::numeric * r.rate_count, 0) / (r.rate_period_ms * 1000));
    if tokens < r.rate_cost then
      return row(0, 'rate', tenure.ready_at(g, r, r.rate_cost))::tenure.admission;
    end if;
    jobs := least(jobs, tokens / r.rate_cost);
  end if;
  return row(jobs, null, null)::tenure.admission;
end $$;

-- When a bucket holds so many tokens, at most the burst.
create function tenure.ready_at(g tenure.gate, r tenure.gate_rule, _tokens bigint) returns timestamptz language sql immutable as $$
  select g.full_at - floor((r.rate_burst - _tokens) * r.rate_period_ms * 1000::numeric / r.rate_count)::bigint * interval '1 us'
$$;

-- A bucket after so many tokens were spent.
create function tenure.spend(g tenure.gate, r tenure.gate_rule, _tokens bigint, _now timestamptz) returns timestamptz language sql immutable as $$
  select case when r.rate_count is null then g.full_at
    else greatest(g.full_at, _now) + ceil(_tokens * r.rate_period_ms * 1000::numeric / r.rate_count)::bigint * interval '1 us' end
$$;

-- Refuses a reservation that the bucket can never hold (tenure_core::gate::bucket).
create function tenure.check_reservation(r tenure.gate_rule, _tokens bigint) returns void language plpgsql as $$
begin
  if _tokens > r.rate_burst then
    perform tenure.refuse('tokens', _tokens::text, format('the gate gives at most its burst of %s at once: ask for less, or raise its burst', r.rate_burst));
  end if;
end $$;

-- When a bucket is full that comes under a rule at a moment: it owes an empty bucket at most, and gains nothing.
create function tenure.come_under(_full_at timestamptz, r tenure.gate_rule, _now timestamptz) returns timestamptz language sql immutable as $$
  select case when r.rate_count is null then _full_at
    else least(_full_at, _now + ceil(r.rate_burst * r.rate_period_ms * 1000::numeric / r.rate_count)::bigint * interval '1 us') end
$$;

create function tenure.open_breaker(g tenure.gate, _until timestamptz) returns tenure.gate language plpgsql immutable as $$
begin
  g.open_until := _until;
  g.probe := null;
  g.deaf_to := g.newest;
  return g;
end $$;

-- What the results of jobs say to the breaker, in order. Each move is written down.
create function tenure.hear(g tenure.gate, r tenure.gate_rule, _leases bigint[], _healths smallint[], _ats timestamptz[], _worker int, _now timestamptz)
  returns tenure.gate language plpgsql as $$
declare moved smallint; begin
  for i in 1..cardinality(_leases) loop
    moved := null;
    if g.probe = _leases[i] then
      g.probe := null;
      if _healths[i] = 1 then
        g.open_until := null;
        g.streak := 0;
        moved := 25;
      elsif _healths[i] = 2 then
        g.streak := g.streak + 1;
        if r.breaker_failures is not null then
          g := tenure.open_breaker(g, _ats[i] + r.breaker_cooldown_ms * interval '1 ms');
          moved := 23;
        end if;
      end if;
    elsif (g.open_until is not null and r.breaker_failures is not null) or _leases[i] <= g.deaf_to then
      null;
    elsif _healths[i] = 1 then
      g.streak := 0;
    elsif _healths[i] = 2 then
      g.streak := g.streak + 1;
      if g.streak >= r.breaker_failures then
        g := tenure.open_breaker(g, _ats[i] + r.breaker_cooldown_ms * interval '1 ms');
        moved := 23;
      end if;
    end if;
    if moved is not null then
      insert into tenure.journal (at, worker, event, jobs, details)
      values (_now, _worker, moved, '{}', jsonb_build_object('gate', g.name, 'streak', g.streak));
    end if;
  end loop;
  return g;
end $$;

-- Locks the gates of these names that nobody else has, finds their rules, and folds what was reported of them: permits
-- come back, holds begin, the breaker hears. Nothing is written but what the breaker did: the caller writes the rows.
--
-- Events are deleted and counted from what the delete returned: a plain select counts what a concurrent fold has counted
-- already. The scan begins at the oldest transaction that was open at the fold before: whatever is older has been folded,
-- and its dead rows are not walked over while somebody's old snapshot keeps them.
create function tenure.open_gates(_names text[], _worker int, _now timestamptz) returns tenure.gate[] language plpgsql
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare held tenure.gate[]; begin
  -- A new gate is entered by whoever comes first; somebody else may be doing so in a transaction that stays open.
  insert into tenure.gate (name)
    select n.name from unnest(_names) n (name)
    where not exists (select from tenure.gate g where g.name = n.name) and pg_try_advisory_xact_lock(tenure.gate_lock(n.name)) order by n.name
    on conflict do nothing;
  held := array(select g from tenure.gate g where g.name = any (_names) order by g.name for update skip locked);
  with floor as materialized (
    -- Of this very statement: a function that is called in it would see what was committed since.
    select pg_snapshot_xmin(pg_current_snapshot()) as xmin
  ), gone as (
    delete from tenure.gate_event e using unnest(held) h where e.gate = h.id and e.xid >= h.folded_to
    returning e.gate, e.id, e.lease, e.at, e.health, e.hold_until
  ), told as (
    select gate, count(*)::int as permits, max(hold_until) as hold_until, max(at) filter (where health = 1) as succeeded_at,
      max(at) filter (where health = 2) as failed_at, array_agg(lease order by id) as leases, array_agg(health order by id) as healths,
      array_agg(at order by id) as ats
    from gone group by gate
  )
  select array_agg(tenure.fold_gate(h, v.version, v.changed_at, f.xmin, t.permits, t.hold_until, t.succeeded_at, t.failed_at, t.leases, t.healths, t.ats, _worker, _now) order by h.name)
    into held from unnest(held) h cross join tenure.gate_rules v cross join floor f left join told t on t.gate = h.id;
  return held;
end $$;

create function tenure.fold_gate(g tenure.gate, _version bigint, _changed_at timestamptz, _floor xid8, _permits int, _hold_until timestamptz, _succeeded_at timestamptz, _failed_at timestamptz,
  _leases bigint[], _healths smallint[], _ats timestamptz[], _worker int, _now timestamptz) returns tenure.gate language plpgsql as $$
declare
  r tenure.gate_rule;
  obeys text;
begin
  if g.rules_seen <> _version then
    obeys := tenure.rule_of(g.name);
    select * into r from tenure.gate_rule where pattern = obeys;
    -- The change of a rule brings buckets under it (change_gate_rule). Here it reaches a claim that was under way
    -- meanwhile: its spending under the rule before was committed later.
    if obeys is distinct from g.pattern or r.rate_version > g.rules_seen then
      g.full_at := tenure.come_under(g.full_at, r, _changed_at);
    end if;
    g.pattern := obeys;
    g.rules_seen := _version;
  end if;
  if _permits is null then return g; end if;
  g.folded_to := _floor;
  g.in_use := greatest(g.in_use - _permits, 0);
  g.held_until := greatest(g.held_until, _hold_until);
  g.succeeded_at := greatest(g.succeeded_at, _succeeded_at);
  g.failed_at := greatest(g.failed_at, _failed_at);
  -- All is well and was before: the breaker hears nothing new.
  if g.streak = 0 and g.open_until is null and _failed_at is null then return g; end if;
  select * into r from tenure.gate_rule where pattern = g.pattern;
  return tenure.hear(g, r, _leases, _healths, _ats, _worker, _now);
end $$;

-- Writes rows that are held, where they changed.
create function tenure.save_gates(_held tenure.gate[]) returns void language sql as $$
  update tenure.gate g set (pattern, rules_seen, folded_to, in_use, full_at, streak, open_until, probe, deaf_to, newest, paused_until, held_until, succeeded_at,
      failed_at, pause_reason, trip_reason)
    = (h.pattern, h.rules_seen, h.folded_to, h.in_use, h.full_at, h.streak, h.open_until, h.probe, h.deaf_to, h.newest, h.paused_until, h.held_until, h.succeeded_at,
      h.failed_at, h.pause_reason, h.trip_reason)
  from unnest(_held) h where g.id = h.id and g.* is distinct from h.*
$$;

-- Takes due jobs of a queue with lines, of each line no more than its share and its gate allow, under one new lease.
-- Rows with a job are as in claim_jobs.sql. A row without is a line whose gate let no more through: why, and until when.
-- A gate that another claim has locked is `busy`, and of several lines through one gate only the first is served: the
-- row of a gate is written once, at the end.
create function tenure.claim_lines(_worker int, _queue text, _limit bigint, _lines text[], _shares int[], _order smallint[], _now timestamptz default null,
  _kib bigint default 8192, _careful boolean default false)
  returns table (canceled boolean, no bigint, lease_ttl_ms int, due timestamptz, job uuid, attempt smallint, losses smallint, run_at timestamptz,
    created_at timestamptz, kind text, payload text, priority smallint, max_attempts smallint, max_losses smallint, backoff text, trace text, tenant text,
    line text, why text, until timestamptz, part text) language plpgsql
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  queue_id int;
  ttl_ms int;
  names text[];
  held tenure.gate[];
  gates int[];
  caps bigint[];
  whys text[];
  untils timestamptz[];
begin
  select q.id, q.lease_ttl_ms into queue_id, ttl_ms from tenure.queue q where q.name = _queue
    and not q.paused;
  if not found then return; end if;
  select array_agg(distinct tenure.line_gate(l.line)) into names from unnest(_lines) l (line) where tenure.line_gate(l.line) is not null;
  if names is not null then held := tenure.open_gates(names, _worker, moment); end if;
  select array_agg(h.id order by l.ord), array_agg(case when l.gate is null then l.share when h.id is null or l.nth > 1 or (h.pattern is not null and r.pattern is null) then 0 else least(l.share, a.jobs) end order by l.ord),
      array_agg(case when l.gate is null then null when h.id is null or l.nth > 1 or (h.pattern is not null and r.pattern is null) then 'busy' else a.why end order by l.ord), array_agg(a.until order by l.ord)
    into gates, caps, whys, untils
    from (
      select *, row_number() over (partition by gate order by ord) as nth
      from (select u.line, u.share, u.ord, tenure.line_gate(u.line) as gate from unnest(_lines, _shares) with ordinality u (line, share, ord)) u
    ) l
    left join unnest(held) h on h.name = l.gate
    left join tenure.gate_rule r on r.pattern = h.pattern
    left join lateral (select (d.a).jobs, (d.a).why, (d.a).until from (select tenure.admit(h, r, moment) as a where h.id is not null offset 0) d) a on true;
  return query
  with lines as materialized (
    select l.line, l.gate, l.cap, l.ord from unnest(_lines, gates, caps) with ordinality l (line, gate, cap, ord) where l.cap > 0
  ), due as materialized (
    select r.place, r.kib from lines l cross join lateral (
      select r.place, r.kib from unnest(_order) p (priority) cross join lateral (
        select r.ctid as place, r.kib from tenure.ready r
        where r.queue = queue_id and r.line = l.line and r.priority = p.priority and r.run_at <= moment
        order by r.queue, r.line, r.priority, r.run_at, r.job
        limit l.cap for update skip locked
      ) r
      limit l.cap
    ) r
    limit _limit
  ), fit as materialized (
    select d.place, sum(d.kib) over (rows unbounded preceding) - d.kib < _kib as fits from due d
  ), taken as (
    delete from tenure.ready r
    where r.ctid = any (case when (select sum(d.kib) from due d) <= _kib then array(select place from due) else array(select place from fit where fits) end)
    returning r.job, r.attempt, r.losses, r.run_at, r.line
  ), doomed as materialized (
    select c.job from tenure.cancel_request c where c.job = any (array(select job from taken))
      and exists (select from tenure.cancel_request)
  ), kept as materialized (
    select t.job, (t.attempt + 1)::smallint as attempt, t.losses, t.run_at, t.line, l.gate from taken t join lines l on l.line = t.line
    where t.job <> all (array(select job from doomed))
    order by t.job
  ), granted as (
    insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses, gates)
    select queue_id, _worker, moment, moment, moment + ttl_ms * interval '1 ms', k.jobs, k.attempts, k.losses, case when k.gated then k.gates end
    from (select array_agg(job) as jobs, array_agg(attempt) as attempts, array_agg(losses) as losses, array_agg(gate) as gates, bool_or(gate is not null) as gated from kept) k
    where k.jobs is not null
    returning no, jobs, claimed_at
  ), passed as (
    update tenure.gate g set (pattern, rules_seen, folded_to, in_use, full_at, streak, open_until, probe, deaf_to, newest, held_until, succeeded_at, failed_at)
      = (n.pattern, n.rules_seen, n.folded_to, n.in_use, n.full_at, n.streak, n.open_until, n.probe, n.deaf_to, n.newest, n.held_until, n.succeeded_at, n.failed_at)
    from unnest(held) h
    left join (select gate, count(*) as jobs from kept where gate is not null group by gate) t on t.gate = h.id
    left join granted l on true
    left join tenure.gate_rule r on r.pattern = h.pattern
    cross join lateral tenure.take_permits(h, r, t.jobs, l.no, moment) n
    where g.id = h.id and g.* is distinct from n.*
  ), drawn as materialized (
    select tenure.draw_lease_no() as no from doomed limit 1
  ), ended as (
    insert into tenure.attempt (job, lease, ended_at, attempt, losses, how, final)
    select t.job, d.no, moment, t.attempt, t.losses, 5, true
    from taken t cross join drawn d where t.job = any (array(select job from doomed))
    order by t.job
    returning job, lease
  ), told as (
    insert into tenure.run_event (part, job, told, at)
    select j.part, e.job, 5, moment from ended e cross join lateral (select j.part from tenure.job j where j.id = e.job offset 0) j
    where j.part is not null and (strpos(j.part, ':') = 0 or (select count(*) from tenure.partition p where p.job = e.job) > 0)
  ), noted as (
    insert into tenure.journal (at, worker, event, lease, jobs)
    select g.claimed_at, _worker, 1, g.no, g.jobs from granted g
    union all
    select moment, _worker, 15, min(e.lease), array_agg(e.job) from ended e having count(*) > 0
  )
  select false, g.no, ttl_ms, moment, k.job, k.attempt, k.losses, k.run_at, j.created_at, j.kind,
    case when _careful then tenure.json_text(j.payload, 1048576) else j.payload::text end, j.priority, j.max_attempts, j.max_losses,
    j.backoff, j.trace, t.name, k.line, null::text, null::timestamptz, j.part
  from kept k cross join granted g join tenure.job j on j.id = k.job join tenure.tenant t on t.id = j.tenant
  union all
  select true, e.lease, ttl_ms, moment, e.job, 0::smallint, 0::smallint, null, null, null, null, null, null, null, null, null, null, t.line, null, null, null
  from ended e join taken t on t.job = e.job
  union all
  select false, null, ttl_ms, moment, null, null, null, null, null, null, null, null, null, null, null, null, null, l.line, l.why, l.until, null
  from unnest(_lines, whys, untils) l (line, why, until) where l.why is not null;
end $$;

-- A gate after so many jobs have passed it under a lease.
create function tenure.take_permits(g tenure.gate, r tenure.gate_rule, _jobs bigint, _lease bigint, _now timestamptz) returns tenure.gate language plpgsql immutable as $$
begin
  if _jobs is null then return g; end if;
  g.full_at := tenure.spend(g, r, _jobs * r.rate_cost, _now);
  g.in_use := g.in_use + _jobs;
  if g.open_until <= _now and r.breaker_failures is not null and g.probe is null then g.probe := _lease; end if;
  g.newest := greatest(g.newest, _lease);
  return g;
end $$;

-- Reserves tokens for a job that is inside its gate and calls its resource again: after how many microseconds it may. Null
-- is for a job that this lease does not hold, or that has no gate.
create function tenure.acquire(_worker int, _lease bigint, _job uuid, _tokens int, _now timestamptz default null)
  returns table (after_us bigint, why text, until timestamptz) language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  of_gate text;
  held tenure.gate[];
  g tenure.gate;
  r tenure.gate_rule;
  a tenure.admission;
  wait_us bigint;
begin
  select tenure.line_gate(j.line) into of_gate from tenure.lease l join tenure.job j on j.id = _job
    where l.no = _lease and l.worker = _worker and _job = any (l.jobs) and not exists (select from tenure.attempt t where t.job = _job and t.lease = _lease);
  if of_gate is null then return; end if;
  -- A claim holds the gate for a moment: wait for it.
  perform from tenure.gate t where t.name = of_gate for update;
  held := tenure.open_gates(array[of_gate], _worker, moment);
  g := held[1];
  select * into r from tenure.gate_rule t where t.pattern = g.pattern;
  perform tenure.check_reservation(r, _tokens);
  a := tenure.admit(g, r, moment);
  if a.why in ('paused', 'held', 'open') then
    perform tenure.save_gates(array[g]);
    return query select null::bigint, a.why, a.until;
    return;
  end if;
  wait_us := 0;
  if r.rate_count is not null then
    wait_us := greatest(tenure.micros(tenure.ready_at(g, r, _tokens) - moment), 0);
    g.full_at := tenure.spend(g, r, _tokens, moment);
  end if;
  perform tenure.save_gates(array[g]);
  return query select wait_us, null::text, null::timestamptz;
end $$;

-- A duration with the largest unit that holds it exactly (tenure_core::duration).
create function tenure.duration_text(_ms bigint) returns text language sql immutable parallel safe as $$
  select case when _ms % 86400000 = 0 then _ms / 86400000 || 'd' when _ms % 3600000 = 0 then _ms / 3600000 || 'h'
    when _ms % 60000 = 0 then _ms / 60000 || 'm' when _ms % 1000 = 0 then _ms / 1000 || 's' else _ms || 'ms' end
$$;

-- A rule as the journal keeps it, in the words that people type; null where there is none (GateRule::to_json).
create function tenure.rule_json(r tenure.gate_rule) returns jsonb language sql immutable as $$
  select case when r.pattern is not null then jsonb_strip_nulls(jsonb_build_object(
    'rate', r.rate_count || '/' || regexp_replace(tenure.duration_text(r.rate_period_ms), '^1(?=[a-z])', ''), 'burst', r.rate_burst, 'cost', r.rate_cost,
    'concurrency', r.concurrency, 'breaker', r.breaker_failures || ':' || tenure.duration_text(r.breaker_cooldown_ms), 'weight', r.weight)) end
$$;

-- Writes a rule, or removes it where _new is null; brings the buckets of the gates that now obey another rule under it, and
-- journals both rules. One change of rules at a time: the first update locks out the others.
create function tenure.change_gate_rule(_pattern text, _new tenure.gate_rule, _actor text, _reason text, _now timestamptz) returns void language plpgsql as $$
declare
  old tenure.gate_rule;
  seen bigint;
  moves boolean;
  owing text[];
  obeyed text[];
begin
  update tenure.gate_rules set version = version + 1, changed_at = _now returning version into seen;
  select * into old from tenure.gate_rule r where r.pattern = _pattern;
  if _new.pattern is null and old.pattern is null then raise exception 'a rule for % is not known here', _pattern using errcode = 'TN404'; end if;
  moves := old.pattern is null or _new.pattern is null
    or (old.rate_count, old.rate_period_ms, old.rate_burst) is distinct from (_new.rate_count, _new.rate_period_ms, _new.rate_burst);
  select array_agg(g.name order by g.name), array_agg(tenure.rule_of(g.name) order by g.name) into owing, obeyed
    from tenure.gate g where moves and g.full_at > _now and (g.name = _pattern or (right(_pattern, 1) = '*' and starts_with(g.name, left(_pattern, -1))));
  if _new.pattern is null then
    delete from tenure.gate_rule r where r.pattern = _pattern;
  else
    _new.rate_version := case when moves then seen else old.rate_version end;
    insert into tenure.gate_rule as t select (_new).*
      on conflict (pattern) do update set rate_count = excluded.rate_count, rate_period_ms = excluded.rate_period_ms, rate_burst = excluded.rate_burst,
        rate_cost = excluded.rate_cost, concurrency = excluded.concurrency, breaker_failures = excluded.breaker_failures,
        breaker_cooldown_ms = excluded.breaker_cooldown_ms, weight = excluded.weight, rate_version = excluded.rate_version;
  end if;
  if owing is not null then
    perform from tenure.gate g where g.name = any (owing) order by g.name for update;
    update tenure.gate g set full_at = tenure.come_under(g.full_at, r, _now)
      from unnest(owing, obeyed) o (name, pattern) join tenure.gate_rule r on r.pattern = tenure.rule_of(o.name)
      where g.name = o.name and (r.pattern is distinct from o.pattern or r.pattern = _pattern) and g.full_at > tenure.come_under(g.full_at, r, _now);
  end if;
  insert into tenure.journal (at, event, jobs, actor, reason, details)
    values (_now, 26, '{}', coalesce(_actor, session_user), _reason,
      jsonb_build_object('gate', _pattern, 'removed', _new.pattern is null, 'old', tenure.rule_json(old), 'new', tenure.rule_json(_new)));
end $$;

-- Sets the whole rule of a gate, or of all whose name begins alike: select tenure.set_gate('domain:*', concurrency => 2);
-- rate is so many per period; failures in a row open the breaker for the cooldown. What is not named is not limited.
create function tenure.set_gate(gate text, rate int default null, period interval default '1 second', burst int default null, cost int default 1,
  concurrency int default null, failures int default null, cooldown interval default '5 minutes', weight int default 1, actor text default null,
  reason text default null, now timestamptz default null) returns void language plpgsql as $$
declare
  period_ms bigint := case when rate is not null then (extract(epoch from period) * 1000)::bigint end;
  cooldown_ms bigint := case when failures is not null then (extract(epoch from cooldown) * 1000)::bigint end;
  held int := case when rate is not null then coalesce(burst, greatest(least(rate * 100::bigint / greatest(period_ms, 1), 1000000), cost, 1)) end;
  r tenure.gate_rule;
begin
  perform tenure.check_gate(gate);
  perform tenure.check_range('rate', coalesce(rate, 1), 1, 1000000, 'it is 1 to 1000000');
  perform tenure.check_range('period', coalesce(period_ms, 1), 1, 86400000, 'a period is 1ms to 1d');
  perform tenure.check_range('burst', coalesce(held, 1), 1, 1000000, 'it is 1 to 1000000');
  perform tenure.check_range('cost', cost, 1, coalesce(held, 1000000), 'a job can cost at most the burst, or it would never pass');
  perform tenure.check_range('concurrency', coalesce(concurrency, 1), 1, 1000000, 'it is 1 to 1000000; to let nothing pass, pause the gate');
  perform tenure.check_range('failures', coalesce(failures, 1), 1, 1000, 'it is 1 to 1000');
  perform tenure.check_range('cooldown', coalesce(cooldown_ms, 1), 1, 86400000, 'a cooldown is 1ms to 1d');
  perform tenure.check_range('weight', weight, 1, 1000, 'it is 1 to 1000');
  perform tenure.check_text('reason', reason);
  r.pattern := gate;
  r.rate_count := rate;
  r.rate_period_ms := period_ms;
  r.rate_burst := held;
  r.rate_cost := case when rate is not null then cost end;
  r.concurrency := concurrency;
  r.breaker_failures := failures;
  r.breaker_cooldown_ms := cooldown_ms;
  r.weight := weight;
  perform tenure.change_gate_rule(gate, r, actor, reason, coalesce(now, clock_timestamp()));
end $$;

create function tenure.check_gate(_gate text) returns void language plpgsql as $$
begin
  if _gate is null or _gate !~ '^([A-Za-z0-9._:/-]{1,100}\*?|\*)$' then
    perform tenure.refuse('gate', coalesce(_gate, 'null'), 'it is a gate''s name, or the beginning of names with a * at its end, such as domain:*');
  end if;
end $$;

create function tenure.remove_gate_rule(gate text, actor text default null, reason text default null, now timestamptz default null) returns void language sql as $$
  select tenure.change_gate_rule(gate, null, actor, reason, coalesce(now, clock_timestamp()))
$$;

-- Pauses, resumes, trips or resets one gate: select tenure.operate_gate('source:ebay', 'pause', lasts => '10 minutes', reason => 'maintenance');
create function tenure.operate_gate(gate text, act text, lasts interval default null, actor text default null, reason text default null, now timestamptz default null)
  returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(now, clock_timestamp());
  until timestamptz := coalesce(least(moment + lasts, '9999-12-30Z'), '9999-12-30Z');
  code smallint := array_position(array['pause', 'resume', 'trip', 'reset'], act)::smallint;
  held tenure.gate[];
  before tenure.gate;
  g tenure.gate;
begin
  perform tenure.check_name('gate', gate);
  perform tenure.check_text('reason', reason);
  if code is null then perform tenure.refuse('act', act, 'it is pause, resume, trip or reset'); end if;
  if not exists (select from tenure.gate t where t.name = gate) then
    perform pg_advisory_xact_lock(tenure.gate_lock(gate));
    insert into tenure.gate (name) values (gate) on conflict do nothing;
  end if;
  perform from tenure.gate t where t.name = gate for update;
  held := tenure.open_gates(array[gate], null, moment);
  g := held[1];
  before := g;
  case act
    when 'pause' then g.paused_until := until;
    when 'resume' then g.paused_until := null; g.held_until := null;
    when 'trip' then g := tenure.open_breaker(g, until);
    else g.open_until := null; g.probe := null; g.streak := 0; g.deaf_to := g.newest; g.full_at := least(g.full_at, moment);
  end case;
  if g is distinct from before then
    if code <= 2 then
      g.pause_reason := case when act = 'pause' then reason end;
    else
      g.trip_reason := case when act = 'trip' then reason end;
    end if;
    insert into tenure.journal (at, event, jobs, actor, reason, details)
      values (moment, 20 + code, '{}', coalesce(actor, session_user), operate_gate.reason, jsonb_build_object('gate', gate));
  end if;
  perform tenure.save_gates(array[g]);
end $$;

-- Counts permits anew from live leases, under the gates' locks, and mends those that differ; answers how many did.
create function tenure.repair_gates() returns int language plpgsql as $$
declare wrong int; begin
  perform from tenure.gate g order by g.name for update;
  with live as (
    select u.gate, count(*)::int as held
    from tenure.lease l cross join lateral unnest(l.jobs, l.gates) u (job, gate)
    where l.gates is not null and u.gate is not null and not exists (select from tenure.attempt a where a.job = u.job and a.lease = l.no)
    group by u.gate
  ), told as (
    select e.gate, count(*)::int as permits from tenure.gate_event e group by e.gate
  ), mended as (
    update tenure.gate g set in_use = x.in_use, folded_to = '0'
    from (
      select g.id, coalesce(l.held, 0) + coalesce(t.permits, 0) as in_use
      from tenure.gate g left join live l on l.gate = g.id left join told t on t.gate = g.id
    ) x
    where g.id = x.id and g.in_use <> x.in_use
    returning g.id
  )
  select count(*) into wrong from mended;
  return wrong;
end $$;

-- For people: gates as they stand. Permits that were given back and not counted yet are counted here.
create view tenure.gates as
select g.name, g.pattern as rule, greatest(g.in_use - (select count(*) from tenure.gate_event e where e.gate = g.id), 0) as in_use, g.streak,
  case when g.paused_until > clock_timestamp() then 'paused' when g.held_until > clock_timestamp() then 'held'
    when g.open_until > clock_timestamp() then 'breaker open' when g.probe is not null then 'probing' else 'ok' end as state,
  g.open_until, g.paused_until, g.pause_reason, g.trip_reason, g.held_until, g.succeeded_at, g.failed_at
from tenure.gate g;
