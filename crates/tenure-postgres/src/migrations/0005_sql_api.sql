-- 0005_sql_api: enqueue, enqueue_many and status for any language, inside any transaction.
-- The same inputs are refused as in the library, in the same words.

create function tenure.refuse(_field text, _value text, _limit text) returns void language plpgsql as $$
begin
  raise exception '% `%` is refused: %', _field, case when length(_value) > 60 then left(_value, 60) || '…' else _value end, _limit using errcode = 'TN422';
end $$;

-- Sessions that add things of one kind to one tenant take turns until they commit, so that each counts what the others added.
-- 1 schedules, 2 open runs, 3 keys, 4 sessions.
create function tenure.count_alone(_kind int, _tenant int) returns void language sql as $$ select pg_advisory_xact_lock(7410 + _kind, _tenant) $$;

create function tenure.check_name(_field text, _name text) returns void language plpgsql as $$
begin
  if _name is null or _name !~ '^[A-Za-z0-9._:/-]{1,100}$' then
    perform tenure.refuse(_field, coalesce(_name, 'null'), 'a name is 1 to 100 of a-z A-Z 0-9 . _ - : /');
  end if;
end $$;

create function tenure.check_text(_field text, _text text) returns void language plpgsql as $$
begin
  if _text = '' or octet_length(_text) > 500 or _text ~ '[\x01-\x1f\x7f-\x9f]' then
    perform tenure.refuse(_field, _text, 'it is 1 to 500 bytes of text without control characters');
  end if;
end $$;

create function tenure.check_range(_field text, _value bigint, _low bigint, _high bigint, _limit text) returns void language plpgsql as $$
begin
  if _value is null or _value not between _low and _high then perform tenure.refuse(_field, coalesce(_value::text, 'null'), _limit); end if;
end $$;

-- What `jsonb` accepts and Tenure does not: too large, too deep, numbers of too many digits (tenure_core::json). Numbers
-- are looked at before the document is written out: `1e-16383` takes 12 bytes in a jsonb and 16 kB as text.
create function tenure.check_json(_field text, _json jsonb, _bytes_max int) returns void language plpgsql as $$
declare
  size int;
begin
  if tenure.has_extreme_number(_json) then
    perform tenure.refuse(_field, jsonb_typeof(_json), 'a number lies outside of what a 64-bit float can hold');
  end if;
  begin
    size := octet_length(_json::text);
  exception when program_limit_exceeded or out_of_memory then   -- a zero keeps its digits: `0e-16383`
    perform tenure.refuse(_field, jsonb_typeof(_json), 'it is at most ' || _bytes_max || ' bytes of JSON');
  end;
  if size > _bytes_max then
    perform tenure.refuse(_field, 'of ' || size || ' bytes', 'it is at most ' || _bytes_max || ' bytes of JSON');
  end if;
  -- `$.**{n}` are the values n levels down; a container 64 levels down is the 65th.
  if size > 128 and jsonb_path_exists(_json, 'strict $.**{64 to last} ? (@.type() == "object" || @.type() == "array")') then
    perform tenure.refuse(_field, _json::text, 'JSON is nested at most 64 deep');
  end if;
end $$;

create function tenure.check_payload(_payload jsonb) returns void language plpgsql as $$
begin
  if _payload is null then perform tenure.refuse('payload', 'null', 'it is a JSON document'); end if;
  perform tenure.check_json('payload', _payload, 1048576);
end $$;

-- Refuses a usage record that the daily totals cannot hold (tenure_store::usage::check_usage).
create function tenure.check_usage(_usage jsonb) returns void language plpgsql as $$
declare
  figures bigint;
  bad record;
begin
  perform tenure.check_json('usage', _usage, 16384);
  if jsonb_typeof(_usage) <> 'object' then return; end if;
  select count(*) into figures from jsonb_each(_usage) u where jsonb_typeof(u.value) = 'number';
  if figures > 100 then
    perform tenure.refuse('usage', 'of ' || figures || ' figures', 'it has at most 100 figures');
  end if;
  select u.key, u.value into bad from jsonb_each(_usage) u
    where jsonb_typeof(u.value) = 'number' and (length(u.key) > 100 or u.value::numeric not between 0 and 1e15) limit 1;
  if not found then return; end if;
  if length(bad.key) > 100 then
    perform tenure.refuse('usage', bad.key, 'the name of a figure has at most 100 characters');
  end if;
  perform tenure.refuse('usage', bad.key || ': ' || bad.value, 'a figure is 0 to 1e15');
end $$;

create function tenure.check_backoff(_backoff text) returns void language plpgsql as $$
begin
  if _backoff !~ '^(never|none|fixed \d{1,11}(ms|s|m|h|d)( jitter (100|\d{1,2})%)?|exponential \d{1,11}(ms|s|m|h|d)\.\.\d{1,11}(ms|s|m|h|d) by (failures|attempts)( jitter (100|\d{1,2})%)?|steps( \d{1,11}(ms|s|m|h|d)){1,50})$'
    or exists (select from regexp_matches(_backoff, '(\d+)(ms|s|m|h|d)', 'g') m
      where m[1]::numeric * (case m[2] when 'ms' then 1 when 's' then 1000 when 'm' then 60000 when 'h' then 3600000 else 86400000 end) > 31536000000)
  then
    perform tenure.refuse('backoff', _backoff, 'it is never, none, fixed 5m, exponential 1m..24h by failures (or attempts), each with jitter 10% if wanted, or steps 1s 10s 5m');
  end if;
end $$;

-- Checks everything a caller says of one job; answers the code of its uniqueness policy.
create function tenure.check_job(_kind text, _payload jsonb, _queue text, _priority int, _delay_ms bigint, _run_at timestamptz, _tenant text, _max_attempts int,
  _max_losses int, _backoff text, _unique_key text, _unique_policy text, _window_ms bigint, _unique_scope text, _idempotency_key text, _trace text, _gate text,
  _callback_url text default null)
  returns smallint language plpgsql as $$
declare policy smallint; begin
  perform tenure.check_name('kind', _kind);
  perform tenure.check_name('queue', _queue);
  perform tenure.check_name('tenant', _tenant);
  perform tenure.check_payload(_payload);
  perform tenure.check_range('priority', _priority, 0, 3, 'priorities are 0 (critical) to 3 (low)');
  perform tenure.check_range('max_attempts', _max_attempts, 1, 1000, 'it is 1 to 1000');
  perform tenure.check_range('max_losses', _max_losses, 1, 1003, 'it is 1 to 1003');
  perform tenure.check_range('delay', coalesce(_delay_ms, 0), 0, 31536000000000, 'a delay is zero or longer and at most 365000d');
  if _run_at not between '1970-01-01Z' and '9999-12-30Z' then
    perform tenure.refuse('run_at', _run_at::text, 'a date is RFC 3339 from 1970 to 9999, such as 2026-11-15T09:30:00Z');
  end if;
  perform tenure.check_backoff(_backoff);
  perform tenure.check_text('unique key', _unique_key);
  perform tenure.check_text('unique scope', _unique_scope);
  perform tenure.check_text('idempotency key', _idempotency_key);
  perform tenure.check_text('trace', _trace);
  if _gate is not null then perform tenure.check_name('gate', _gate); end if;
  if _callback_url is not null and (_callback_url !~ '^https?://[^[:space:][:cntrl:]]+$' or octet_length(_callback_url) > 2000) then
    perform tenure.refuse('callback_url', _callback_url, 'it is an https:// URL of at most 2000 bytes, without spaces');
  end if;
  if _unique_key is null then return null; end if;
  policy := array_position(array['while_active', 'unless_failed', 'forever', 'window'], coalesce(_unique_policy, 'while_active'));
  if policy is null then perform tenure.refuse('unique policy', _unique_policy, 'it is while_active, unless_failed, forever or window'); end if;
  if policy = 4 then perform tenure.check_range('unique window', _window_ms, 1, 31536000000, 'a window is longer than zero and at most 365d'); end if;
  return policy;
end $$;

-- Stores one job: select * from tenure.enqueue('invoice.send', '{"order": 42}', queue => 'mail', unique_key => 'inv:42');
create function tenure.enqueue(
  kind text, payload jsonb default '{}', queue text default 'default', priority int default 2, delay interval default null, run_at timestamptz default null,
  tenant text default 'default', max_attempts int default 5, max_losses int default null, backoff text default null, unique_key text default null,
  unique_policy text default null, unique_window interval default null, unique_scope text default null, idempotency_key text default null,
  trace text default null, waiting boolean default false, id uuid default null, gate text default null, callback_url text default null)
  returns table (job uuid, created boolean, state text) language plpgsql as $$
declare
  losses int := coalesce(max_losses, max_attempts + 3);
  window_ms bigint := (extract(epoch from unique_window) * 1000)::bigint;
  delay_ms bigint := (extract(epoch from delay) * 1000)::bigint;
  policy smallint := tenure.check_job(kind, payload, queue, priority, delay_ms, run_at, tenant, max_attempts, losses, backoff, unique_key, unique_policy, window_ms,
    unique_scope, idempotency_key, trace, gate, callback_url);
begin
  return query select e.job, e.created, e.state from tenure.enqueue_rows(
    array[coalesce(id, tenure.new_id())], array[tenant], array[queue], array[kind], array[payload], array[priority::smallint], array[run_at], array[delay_ms],
    array[waiting], array[max_attempts::smallint], array[losses::smallint], array[backoff], array[trace],
    array[policy], array[case when policy = 4 then window_ms end], array[case when policy is not null then coalesce(unique_scope, kind) end], array[unique_key],
    array[idempotency_key], null, array[gate], null, case when callback_url is not null then array[callback_url] end) e;
  perform tenure.wake(queue);
end $$;

-- Stores many, all or none: an array of objects with the arguments of tenure.enqueue; delay and unique_window in seconds.
create function tenure.enqueue_many(jobs jsonb) returns table (ord int, job uuid, created boolean, state text) language plpgsql as $$
declare unknown text; begin
  if jsonb_typeof(jobs) is distinct from 'array' then perform tenure.refuse('jobs', coalesce(jsonb_typeof(jobs), 'null'), 'it is a JSON array of objects'); end if;
  select k into unknown from jsonb_array_elements(jobs) e cross join lateral jsonb_object_keys(e) k
    where k <> all (array['kind', 'payload', 'queue', 'priority', 'delay', 'run_at', 'tenant', 'max_attempts', 'max_losses', 'backoff', 'unique_key', 'unique_policy',
      'unique_window', 'unique_scope', 'idempotency_key', 'trace', 'waiting', 'id', 'gate', 'callback_url']) limit 1;
  if unknown is not null then perform tenure.refuse('field', unknown, 'a job has the fields that are arguments of tenure.enqueue'); end if;
  return query
  with given as materialized (
    select n.ord, r.kind, coalesce(r.payload, '{}') as payload, coalesce(r.queue, 'default') as queue, coalesce(r.priority, 2) as priority, (r.delay * 1000)::bigint as delay_ms,
      r.run_at, coalesce(r.tenant, 'default') as tenant, coalesce(r.max_attempts, 5) as max_attempts, coalesce(r.max_losses, coalesce(r.max_attempts, 5) + 3) as max_losses,
      r.backoff, r.unique_key, r.unique_policy, (r.unique_window * 1000)::bigint as window_ms, coalesce(r.unique_scope, r.kind) as scope, r.idempotency_key, r.trace,
      coalesce(r.waiting, false) as waiting, coalesce(r.id, tenure.new_id()) as id, r.gate, r.callback_url
    from jsonb_array_elements(jobs) with ordinality n (body, ord)
    cross join lateral jsonb_to_record(n.body) r (kind text, payload jsonb, queue text, priority int, delay double precision, run_at timestamptz, tenant text,
      max_attempts int, max_losses int, backoff text, unique_key text, unique_policy text, unique_window double precision, unique_scope text,
      idempotency_key text, trace text, waiting boolean, id uuid, gate text, callback_url text)
  ), checked as materialized (
    select g.*, tenure.check_job(g.kind, g.payload, g.queue, g.priority, g.delay_ms, g.run_at, g.tenant, g.max_attempts, g.max_losses, g.backoff, g.unique_key,
      g.unique_policy, g.window_ms, g.scope, g.idempotency_key, g.trace, g.gate, g.callback_url) as policy
    from given g
  ), lists as (
    select array_agg(c.id order by c.ord) as ids, array_agg(c.tenant order by c.ord) as tenants, array_agg(c.queue order by c.ord) as queues,
      array_agg(c.kind order by c.ord) as kinds, array_agg(c.payload order by c.ord) as payloads, array_agg(c.priority::smallint order by c.ord) as priorities,
      array_agg(c.run_at order by c.ord) as run_ats, array_agg(c.delay_ms order by c.ord) as delays, array_agg(c.waiting order by c.ord) as waits,
      array_agg(c.max_attempts::smallint order by c.ord) as attempts, array_agg(c.max_losses::smallint order by c.ord) as losses, array_agg(c.backoff order by c.ord) as backoffs,
      array_agg(c.trace order by c.ord) as traces, array_agg(c.policy order by c.ord) as policies,
      array_agg(case when c.policy = 4 then c.window_ms end order by c.ord) as windows, array_agg(case when c.policy is not null then c.scope end order by c.ord) as scopes,
      array_agg(c.unique_key order by c.ord) as keys, array_agg(c.idempotency_key order by c.ord) as idempotency_keys, array_agg(c.gate order by c.ord) as gates,
      case when count(c.callback_url) > 0 then array_agg(c.callback_url order by c.ord) end as callbacks
    from checked c having count(*) > 0
  )
  select e.* from lists l cross join lateral tenure.enqueue_rows(l.ids, l.tenants, l.queues, l.kinds, l.payloads, l.priorities, l.run_ats, l.delays, l.waits, l.attempts,
    l.losses, l.backoffs, l.traces, l.policies, l.windows, l.scopes, l.keys, l.idempotency_keys, null, l.gates, null, l.callbacks) e order by e.ord;
  perform tenure.wake(q) from (select distinct coalesce(e ->> 'queue', 'default') from jsonb_array_elements(jobs) e) d (q);
end $$;

-- Wakes an idle worker of this queue, if there is one. Inside a transaction NOTIFY serialises commits, so it is sent only then.
create function tenure.wake(_queue text) returns void language sql as $$
  select pg_notify('tenure', name) from tenure.queue where name = _queue and idle_until > clock_timestamp()
$$;

-- One job as it stands: select * from tenure.status('01933c5e-…');
create function tenure.status(_job uuid) returns setof tenure.jobs language sql stable as $$
  select * from tenure.jobs where id = _job
$$;
