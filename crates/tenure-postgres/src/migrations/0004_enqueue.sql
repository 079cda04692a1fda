-- 0004_enqueue: storing jobs, for the library and for plain SQL alike.
--
-- tenure.enqueue_rows does the work for arrays of checked values (the library checks with the same rules in Rust, and
-- stores jobs that meet nobody by enqueue_plain.sql, which must mean the same);
-- tenure.enqueue and tenure.enqueue_many are for people and other languages: they check, fill in defaults and notify.
-- All of them run in the caller's transaction.

-- A new uuid v7.
create function tenure.new_id() returns uuid language sql volatile as $$
  select encode(set_byte(set_byte(
    overlay(uuid_send(gen_random_uuid()) placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112), 8, (get_byte(uuid_send(gen_random_uuid()), 8) & 63) | 128), 'hex')::uuid
$$;

create function tenure.id_time(id uuid) returns timestamptz language sql immutable parallel safe as $$
  select to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint / 1000.0)
$$;

-- Makes the commit of this transaction wait for the synchronous standbys, although it may write nothing. Every answer "it
-- is there already" rests on another transaction's row, and that row may be visible before a standby has it: when its
-- backend was canceled or terminated while it waited, or the server was restarted.
create function tenure.await_standbys() returns boolean language plpgsql as $$
begin
  if current_setting('synchronous_standby_names') <> '' then
    perform pg_logical_emit_message(true, 'tenure', '');
  end if;
  return true;
end $$;

-- An id below every id with this time or a later one.
create function tenure.id_at(_at timestamptz) returns uuid language sql immutable parallel safe as $$
  select rpad(lpad(to_hex(greatest(floor(extract(epoch from _at) * 1000), 0)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- Where a job stands; null: there is no such job (any more).
create function tenure.state_of(_job uuid) returns text language sql stable as $$
  select coalesce(
    (select (array['queued', 'retryable', 'waiting'])[r.state + 1] from tenure.ready r where r.job = _job),
    (select (array['succeeded', null, 'failed', 'dead', 'canceled'])[a.how] from tenure.attempt a where a.job = _job and a.final limit 1),
    (select 'running' from tenure.job j where j.id = _job))
$$;

-- The id number _try of a name. Ids below a million are for rows that were entered by hand.
create function tenure.derived_id(_name text, _try int) returns int language sql immutable parallel safe as $$
  select (1000000 + ('x' || left(encode(sha256(convert_to(_try || ' ' || _name, 'UTF8')), 'hex'), 15))::bit(60)::bigint % 999000000)::int
$$;

-- The id for a tenant or a queue without a row: the first derived one that no other name has.
create function tenure.new_id_of(_what text, _name text) returns int language plpgsql as $$
declare candidate int; begin
  for try in 0..99 loop
    candidate := tenure.derived_id(_name, try);
    if _what = 'tenant' then
      exit when not exists (select from tenure.tenant t where t.id = candidate and t.name <> _name);
    else
      exit when not exists (select from tenure.queue q where q.id = candidate and q.name <> _name);
    end if;
  end loop;
  return candidate;
end $$;

create function tenure.derive_id() returns trigger language plpgsql as $$
begin
  if new.id is null then new.id := tenure.new_id_of(tg_table_name, new.name); end if;
  return new;
end $$;

create trigger tenant_derives_its_id before insert on tenure.tenant for each row execute function tenure.derive_id();
create trigger queue_derives_its_id before insert on tenure.queue for each row execute function tenure.derive_id();

-- Ids of tenants; a new one is entered now. For short transactions of the library only: other transactions that bring the
-- same name wait for this one. An enqueue calls tenure.resolve_tenants instead.
create function tenure.tenant_ids(_names text[]) returns int[] language plpgsql as $$
declare ids int[]; begin
  for i in 1..3 loop
    select array_agg(t.id order by n.ord) into ids from unnest(_names) with ordinality n (name, ord) left join tenure.tenant t on t.name = n.name;
    if array_position(ids, null) is null then return ids; end if;
    insert into tenure.tenant (name) select distinct name from unnest(_names) n (name) order by name on conflict do nothing;
  end loop;
  raise exception 'tenants % cannot be entered beside other transactions: run the transaction again', _names using errcode = '40001';
end $$;

-- Ids of tenants, in the order given. A name without a row is entered when this transaction commits.
create function tenure.resolve_tenants(_names text[]) returns int[] language plpgsql as $$
declare ids int[]; begin
  select array_agg(t.id order by n.ord) into ids from unnest(_names) with ordinality n (name, ord) left join tenure.tenant t on t.name = n.name;
  if array_position(ids, null) is null then return ids; end if;
  return tenure.bring_names('tenant', _names, ids);
end $$;

-- The same for queues.
create function tenure.resolve_queues(_names text[]) returns int[] language plpgsql as $$
declare ids int[]; begin
  select array_agg(q.id order by n.ord) into ids from unnest(_names) with ordinality n (name, ord) left join tenure.queue q on q.name = n.name;
  if array_position(ids, null) is null then return ids; end if;
  return tenure.bring_names('queue', _names, ids);
end $$;

-- Fills the gaps in _ids: names that this transaction brings.
create function tenure.bring_names(_what text, _names text[], _ids int[]) returns int[] language plpgsql as $$
declare ids int[]; begin
  insert into tenure.new_name (what, id, name)
    select _what, tenure.new_id_of(_what, u.name), u.name
    from (select distinct n.name from unnest(_names, _ids) n (name, id) where n.id is null) u
    where not exists (select from tenure.new_name o where o.xid = pg_current_xact_id() and o.what = _what and o.name = u.name);
  select array_agg(coalesce(n.id, o.id) order by n.ord) into ids
    from unnest(_names, _ids) with ordinality n (name, id, ord)
    left join tenure.new_name o on n.id is null and o.xid = pg_current_xact_id() and o.what = _what and o.name = n.name;
  return ids;
end $$;

-- Notes queues that get their first line (`lined`) or their first part of a run (`parted`) with this transaction.
create function tenure.bring_flags(_what text, _queues int[]) returns void language plpgsql as $$
begin
  insert into tenure.new_name (what, id)
    select distinct _what, n.id from unnest(_queues) n (id)
    where not exists (select from tenure.new_name o where o.id = n.id and o.what = _what);
end $$;

-- Enters what a transaction brings. Runs once at the commit, so the new rows are locked for the length of a commit and not
-- of a transaction; in one order, so that two commits cannot wait for each other. Runs with the rights of the schema's
-- owner: at the commit the role that called the enqueue may be set no more.
create function tenure.enter_names() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  n record;
  is_entered boolean;
begin
  for n in
    with brought as (
      delete from tenure.new_name o where o.xid = pg_current_xact_id() returning o.what, o.id, o.name
    )
    select distinct array_position(array['tenant', 'queue', 'lined', 'parted'], b.what) as step, b.what, b.id, b.name from brought b order by step, b.name, b.id
  loop
    case n.what
      when 'tenant' then
        insert into tenure.tenant (id, name) values (n.id, n.name) on conflict do nothing;
        is_entered := found or exists (select from tenure.tenant t where t.id = n.id and t.name = n.name);
      when 'queue' then
        insert into tenure.queue (id, name) values (n.id, n.name) on conflict do nothing;
        is_entered := found or exists (select from tenure.queue q where q.id = n.id and q.name = n.name);
        -- A worker may have gone idle since the enqueue, which found no queue to wake.
        perform pg_notify('tenure', q.name) from tenure.queue q where q.id = n.id and q.idle_until > clock_timestamp();
      when 'lined' then
        update tenure.queue q set lined = true where q.id = n.id and not q.lined;
        is_entered := true;
      else
        update tenure.queue q set parted = true where q.id = n.id and not q.parted;
        is_entered := true;
    end case;
    -- Two names that derive the same id, entered at the same time.
    if not is_entered then
      raise exception '% `%` cannot be entered beside other transactions: run the transaction again', n.what, n.name using errcode = '40001';
    end if;
  end loop;
  return null;
end $$;

create constraint trigger names_are_entered after insert on tenure.new_name deferrable initially deferred
  for each row execute function tenure.enter_names();
-- Also in a session that is set to skip triggers: its jobs would have no queue.
alter table tenure.new_name enable always trigger names_are_entered;

-- Takes a key for _job, or says who has it; null: _job itself, which was stored before. The usual duplicate ends at a plain read. A key whose holder has let go is
-- taken over under its row lock, looking again: requeue holds the same lock, and without it two jobs would be active.
create function tenure.take_key(_tenant int, _scope text, _key text, _policy smallint, _job uuid, _expires timestamptz, _digest bytea, _batch uuid[], _now timestamptz)
  returns uuid language plpgsql as $$
declare k tenure.unique_key; state text; holds boolean; begin
  for i in 1..100 loop
    insert into tenure.unique_key (tenant, scope, key, policy, job, expires_at, digest)
      values (_tenant, _scope, _key, _policy, _job, _expires, _digest) on conflict do nothing;
    if found then return _job; end if;
    for look in 1..2 loop
      if look = 1 then
        select * into k from tenure.unique_key u where u.tenant = _tenant and u.scope = _scope and u.key = _key;
      else
        select * into k from tenure.unique_key u where u.tenant = _tenant and u.scope = _scope and u.key = _key for update;
      end if;
      exit when not found;                                        -- freed meanwhile: insert again
      state := tenure.state_of(k.job);
      if state is null and k.job = any (_batch) then state := 'queued'; end if;   -- stored a moment later, by this very call
      holds := case k.policy
        when 1 then state is not null and state not in ('succeeded', 'failed', 'dead', 'canceled')
        when 2 then state is null or state not in ('failed', 'dead', 'canceled')      -- pruned: freed keys go with the job
        when 3 then true
        else k.expires_at > _now end;
      if holds or k.job = _job then
        if k.digest is distinct from _digest then
          raise exception 'idempotency key `%` was used for job % with another body and cannot name job %', _key, k.job, _job using errcode = 'TN409';
        end if;
        return nullif(k.job, _job);
      end if;
      if look = 2 then
        update tenure.unique_key u set policy = _policy, job = _job, expires_at = _expires, digest = _digest
          where u.tenant = _tenant and u.scope = _scope and u.key = _key;
        return _job;
      end if;
    end loop;
  end loop;
  raise exception 'unique key `%` keeps changing hands', _key using errcode = '40001';
end $$;

-- The scope of idempotency keys: no kind and no scope of a caller can hold a control character.
create function tenure.idempotency_scope() returns text language sql immutable parallel safe as $$ select e'\x01idempotency' $$;

-- Refuses jobs just stored that go past a quota. Lines of one tenant begin with its number, a gate's name follows after /,
-- and 0 comes after /. It counts what is committed and what this transaction stored, and locks nothing: enqueues at the
-- same time do not see each other. A consolidate always has room: its run could not end without it.
create function tenure.refuse_beyond_quota(_jobs uuid[]) returns void language plpgsql as $$
declare f record; begin
  select q.name, m.quota, t.name as tenant into f
    from (select distinct r.queue, split_part(r.line, '/', 1) as tenant from tenure.ready r join tenure.job j on j.id = r.job
      where r.job = any (_jobs) and (j.part is null or right(j.part, 12) <> '/consolidate')) l
    join tenure.queue q on q.id = l.queue
    left join tenure.tenant t on q.fair and t.id::text = l.tenant
    cross join lateral (select coalesce(t.quota, q.quota) as quota) m
    where m.quota < (select count(*) from (
      select from tenure.ready r where r.queue = l.queue and r.line >= l.tenant and (not q.fair or r.line < l.tenant || '0') limit m.quota + 1) p)
    limit 1;
  if found then
    raise exception 'queue `%` is full%: its quota is % pending jobs; come again when some are claimed, or raise it with `tenure queues set % --quota N`',
      f.name, coalesce(' for tenant `' || f.tenant || '`', ''), f.quota, f.name using errcode = 'TN429';
  end if;
end $$;

-- KiB of a document's text, rounded up.
create function tenure.kib_of(_json jsonb) returns smallint language sql immutable parallel safe as $$
  select greatest((octet_length(_json::text) + 1023) / 1024, 1)::smallint
$$;

-- Stores jobs, in the order given; `job` is the one that is there now, `state` where an earlier one stands.
create function tenure.enqueue_rows(
  _ids uuid[], _tenants text[], _queues text[], _kinds text[], _payloads jsonb[], _priorities smallint[], _run_ats timestamptz[],
  _delays_ms bigint[], _waiting boolean[], _max_attempts smallint[], _max_losses smallint[], _backoffs text[], _traces text[],
  _policies smallint[], _windows_ms bigint[], _scopes text[], _keys text[], _idempotency_keys text[], _now timestamptz default null, _gates text[] default null, _parts text[] default null, _callbacks text[] default null, _kibs smallint[] default null)
  returns table (ord int, job uuid, created boolean, state text) language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  tenants int[] := tenure.resolve_tenants(_tenants);
  queues int[] := tenure.resolve_queues(_queues);
  lines text[];
  unflagged int[];
  holders uuid[] := _ids;
  waits uuid[] := array(select w.id from unnest(_ids, _waiting) w (id, waiting) where w.waiting);
  stored uuid[];
  known uuid[];
  taken tenure.unique_key;
  off uuid;
  k record;
begin
  select i.id into off from unnest(_ids) i (id)
    where substr(i.id::text, 15, 1) <> '7' or tenure.id_time(i.id) not between moment - interval '1 day' and moment + interval '1 day' limit 1;
  if off is not null then
    raise exception 'id `%` is refused: a job id is a uuid of version 7 whose time is within a day of the store''s clock %', off, moment using errcode = 'TN422';
  end if;
  -- A job that is there already is what it is: no key of it is taken again, even if it is pruned while we look. Its holder is null.
  known := array(select j.id from tenure.job j where j.id = any (
    array(select i.id from unnest(_ids, _keys, _idempotency_keys) i (id, key, idempotency_key) where coalesce(i.key, i.idempotency_key) is not null)));
  if known <> '{}' then
    holders := array(select case when i.id <> all (known) then i.id end from unnest(_ids) with ordinality i (id, ord) order by i.ord);
  end if;
  -- Keys are taken in one order, whatever the order of the jobs, so that two batches cannot wait for each other.
  for k in
    select n.ord::int as ord, n.tenant, u.scope, u.key, u.policy, u.expires_at, u.digest, n.id, n.idempotency_key
    from unnest(_ids, tenants, _tenants, _queues, _kinds, _payloads, _policies, _windows_ms, _scopes, _keys, _idempotency_keys) with ordinality
      n (id, tenant, tenant_name, queue, kind, payload, policy, window_ms, scope, key, idempotency_key, ord)
    cross join lateral (
      select n.scope, n.key, n.policy, moment + n.window_ms * interval '1 ms' as expires_at, null::bytea as digest where n.key is not null
      union all
      select tenure.idempotency_scope(), n.idempotency_key, 4::smallint, moment + interval '7 days',
        sha256(convert_to(concat_ws(e'\x01', n.tenant_name, n.queue, n.kind, n.payload::text), 'UTF8')) where n.idempotency_key is not null
    ) u
    order by n.tenant, u.digest is null, u.scope collate "C", u.key collate "C", n.ord
  loop
    -- A job found by its idempotency key asks for no other; one found by its unique key is what the request is answered with.
    continue when holders[k.ord] is distinct from k.id;
    holders[k.ord] := tenure.take_key(k.tenant, k.scope, k.key, k.policy, k.id, k.expires_at, k.digest, _ids, moment);
    -- A job that the call names twice has the key since its first mention: it was not stored before, and may yet not be.
    if holders[k.ord] = k.id then
      taken := row(k.tenant, k.scope, k.key, k.policy, k.id, null, null);
    elsif holders[k.ord] is null and (taken.tenant, taken.scope, taken.key, taken.job) = (k.tenant, k.scope, k.key, k.id) then
      holders[k.ord] := k.id;
    end if;
    if holders[k.ord] <> k.id and k.idempotency_key is not null then
      update tenure.unique_key u set job = holders[k.ord]
        where u.tenant = k.tenant and u.scope = tenure.idempotency_scope() and u.key = k.idempotency_key;
      -- Jobs of this call that were found by the same idempotency key are answered with the same job: this one is not stored.
      holders := array_replace(holders, k.id, holders[k.ord]);
    end if;
  end loop;
  -- Where each waits: a gate makes a line, and in a fair queue a tenant does. A queue that this transaction brings has no row yet.
  lines := array(
    select case when q.fair then n.tenant::text else '' end || coalesce('/' || n.gate, '')
    from unnest(queues, tenants, _gates) with ordinality n (queue, tenant, gate, ord) left join tenure.queue q on q.id = n.queue order by n.ord);
  if exists (select from unnest(lines) l (line) where l.line <> '') then
    unflagged := array(
      select n.queue from unnest(queues, lines) n (queue, line) left join tenure.queue q on q.id = n.queue where n.line <> '' and q.lined is not true);
    if unflagged <> '{}' then perform tenure.bring_flags('lined', unflagged); end if;
  end if;
  if _parts is not null then
    unflagged := array(select n.queue from unnest(queues) n (queue) left join tenure.queue q on q.id = n.queue where q.parted is not true);
    if unflagged <> '{}' then perform tenure.bring_flags('parted', unflagged); end if;
  end if;
  -- One unnest of everything: subscripts into arrays of text are linear, a batch of them quadratic.
  with input as materialized (
    select * from unnest(_ids, holders, tenants, queues, _kinds, _payloads, _priorities, _run_ats, _delays_ms, _waiting, _max_attempts, _max_losses, _backoffs, _traces,
      _policies, _scopes, _keys, lines, _parts, _kibs) with ordinality
      i (id, holder, tenant, queue, kind, payload, priority, run_at, delay_ms, waiting, max_attempts, max_losses, backoff, trace, policy, scope, key, line, part, kib, ord)
    where i.holder = i.id
  ), j as (
    insert into tenure.job (id, created_at, run_at, tenant, queue, line, priority, max_attempts, max_losses, kind, backoff, unique_policy, unique_scope, unique_key, trace, part, kib, payload)
    select i.id, moment, greatest(coalesce(i.run_at, moment + coalesce(i.delay_ms, 0) * interval '1 ms'), moment),
      i.tenant, i.queue, i.line, i.priority, i.max_attempts, i.max_losses, i.kind, i.backoff, i.policy, i.scope, i.key, i.trace, i.part,
      coalesce(i.kib, tenure.kib_of(i.payload)), i.payload
    from input i order by i.id, i.ord                             -- two sends of one batch in another order must not wait for each other
    on conflict (id) do nothing
    returning tenure.job.id, tenure.job.queue, tenure.job.line, tenure.job.priority, tenure.job.run_at, tenure.job.kib
  ), r as (
    insert into tenure.ready (run_at, job, queue, line, priority, state, kib)
    select case when j.id = any (waits) then 'infinity' else j.run_at end, j.id, j.queue, j.line, j.priority,
      case when j.id = any (waits) then 2 else 0 end, j.kib
    from j
  )
  select array_agg(j.id) into stored from j;
  if _callbacks is not null then
    insert into tenure.job_callback (job, url) select c.job, c.url from unnest(_ids, _callbacks) c (job, url) where c.url is not null and c.job = any (stored)
      on conflict do nothing;                                     -- a job that the call names twice
  end if;
  if stored <> '{}' and exists (select from tenure.queue q where q.id = any (queues)
      and (q.quota is not null or q.fair and exists (select from tenure.tenant t where t.id = any (tenants) and t.quota is not null))) then
    perform tenure.refuse_beyond_quota(stored);
  end if;
  if cardinality(stored) = cardinality(_ids) then
    return query select n.ord::int, n.id, true, null::text from unnest(_ids) with ordinality n (id, ord) order by n.ord;
    return;
  end if;
  perform tenure.await_standbys();
  -- Nothing is told about a job of somebody else's.
  select n.id into off from unnest(_ids, tenants) n (id, tenant) join tenure.job j on j.id = n.id where j.tenant <> n.tenant limit 1;
  if off is not null then
    raise exception 'id `%` is refused: it is in use, make a new one', off using errcode = 'TN422';
  end if;
  return query
    select n.ord::int, n.holder, n.made, case when n.made then null else tenure.state_of(n.holder) end
    from (
      select i.ord, coalesce(i.holder, i.id) as holder, i.holder is not distinct from i.id and i.id = any (coalesce(stored, '{}')) and row_number() over (partition by i.id order by i.ord) = 1 as made
      from unnest(_ids, holders) with ordinality i (id, holder, ord)
    ) n
    order by n.ord;
end $$;
