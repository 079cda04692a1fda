-- 0020_home: what ties the data to its cluster, and how it is reset in another one.

-- Every stored position of a server: sequences, transaction ids, snapshots, and clock values that steer. A test compares the
-- list with the catalog, so that a new sequence or column cannot be forgotten.
--   place    a sequence, or table.column
--   step     leap of a sequence for each timeline that a failover or a recovery adds; more than a lag can hold
--   leap     leap of a sequence when the database is rehomed. Far above the step, so that a copy stays apart from its
--            original when that one fails over next
--   keys     columns with numbers of the sequence: logical replication and some dumps do not carry sequences
--   reset    statement that rehoming runs
create function tenure.positions() returns table (place text, kind text, step bigint, leap bigint, keys text[], reset text, why text)
  language sql immutable as $$
values
  ('lease_no_seq', 'sequence', 1::bigint << 32, 1::bigint << 40,
    '{lease.no,attempt.lease,journal.lease,gate.newest,gate.deaf_to,gate.probe,gate_event.lease}'::text[], null,
    'the fence: workers and receivers hold these numbers'),
  ('journal_id_seq', 'sequence', 1::bigint << 32, 1::bigint << 40,
    '{journal.id,seal.upto,webhook_delivery.journal,webhook_cursor.after,rollup_cursor.after}', null,
    'part of the event id by which receivers of webhooks tell repeats'),
  -- An int: 2^20 more workers than started are enough, and the type has room for 2,047 leaps.
  ('worker_id_seq', 'sequence', 1 << 20, 1 << 20, '{worker.id,lease.worker}', null,
    'a process of before must not speak for another one'),
  ('gate_id_seq', 'sequence', 0, 0, '{gate.id}', null, 'known inside the database only'),
  ('schedule_id_seq', 'sequence', 0, 0, '{schedule.id}', null, 'known inside the database only'),
  ('gate_event_id_seq', 'sequence', 0, 0, '{gate_event.id}', null, 'known inside the database only'),
  ('run_event_id_seq', 'sequence', 0, 0, '{run_event.id}', null, 'known inside the database only'),
  ('usage_event_id_seq', 'sequence', 0, 0, '{usage_event.id}', null, 'known inside the database only'),
  ('gate.folded_to', 'transaction', null, null, null, $r$update tenure.gate set folded_to = '0'$r$,
    'events of newer transactions only are read'),
  ('gate_event.xid', 'transaction', null, null, null, 'update tenure.gate_event set xid = pg_current_xact_id()',
    'compared with gate.folded_to'),
  ('run_fold.folded_to', 'transaction', null, null, null, $r$update tenure.run_fold set folded_to = '0'$r$,
    'events of newer transactions only are read'),
  ('run_event.xid', 'transaction', null, null, null, 'update tenure.run_event set xid = pg_current_xact_id()',
    'compared with run_fold.folded_to'),
  ('journal.xid', 'transaction', null, null, null, null, 'compared within its era only'),
  ('new_name.xid', 'transaction', null, null, null, null, 'no row outlives its transaction'),
  ('seal.before', 'snapshot', null, null, null, null, 'compared within its era only'),
  ('seal.snapshot', 'snapshot', null, null, null, null, 'compared within its era only'),
  ('queue.swept_at', 'clock', null, null, null, $r$update tenure.queue set swept_at = '-infinity'$r$,
    'the late-commit sweep waits for this time'),
  ('queue.idle_until', 'clock', null, null, null, $r$update tenure.queue set idle_until = '-infinity'$r$,
    'the workers that wanted to be woken are elsewhere')
$$;

-- Moves every sequence above what was drawn, by its step or its leap, and with _from_data above every number in the tables.
create function tenure.leap_numbers(_steps bigint, _leaps bigint, _from_data boolean) returns void language plpgsql as $$
declare
  p record;
  key text;
  drawn bigint;
  stored bigint;
  leap bigint;
begin
  for p in select * from tenure.positions() o where o.kind = 'sequence' loop
    execute format('select case when is_called then last_value else last_value - 1 end from tenure.%I', p.place) into drawn;
    if _from_data then
      foreach key in array p.keys loop
        execute format('select max(%I) from tenure.%I', split_part(key, '.', 2), split_part(key, '.', 1)) into stored;
        drawn := greatest(drawn, stored);
      end loop;
    end if;
    leap := p.step * _steps + p.leap * _leaps;
    drawn := drawn + leap;
    -- A sequence that stays is not written: other sessions draw from it meanwhile.
    if drawn > 0 and (leap > 0 or _from_data) then perform setval(format('tenure.%I', p.place), drawn); end if;
  end loop;
end $$;

-- Follows a failover or a recovery: once for each step of the timeline, however many sessions see it at the same time, since
-- they meet at the row of tenure.home. Runs with the rights of the schema's owner: its callers may neither change that row
-- nor set a sequence.
create function tenure.leap_to_timeline() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  home record;
  here bigint := tenure.timeline();
begin
  select * into home from tenure.home h order by h.era desc limit 1 for update;
  if home.timeline = here then return; end if;
  if home.timeline > here then
    raise exception 'this database was written on timeline %, and its server is on timeline %: run `tenure migrate rehome --leap` once', home.timeline, here
      using errcode = 'TN421';
  end if;
  update tenure.home h set timeline = here where h.era = home.era;
  perform tenure.leap_numbers(here - home.timeline, 0, false);
  insert into tenure.journal (at, event, jobs, actor, reason, details)
  values (clock_timestamp(), 9, '{}', session_user, 'a standby was promoted or a backup recovered: numbers leap',
    jsonb_build_object('timeline', here, 'timeline_before', home.timeline));
end $$;

-- What a new session checks before its first statement. Nothing on a standby: its server writes nothing.
create function tenure.check_home() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  home record;
  here bigint;
begin
  if pg_is_in_recovery() then return; end if;
  select c.system_identifier into here from pg_control_system() c;
  select * into home from tenure.home h order by h.era desc limit 1;
  if home.system_identifier <> here then
    raise exception 'this database comes from another cluster (system identifier %, here it is %): run `tenure migrate rehome` once to begin a new era of its journal',
      home.system_identifier, here using errcode = 'TN421';
  end if;
  perform tenure.follow_timeline();
end $$;

-- Begins a new era in the cluster that the database lives in now. With _leap also where the cluster seems to be the same: a
-- clone, a backup that kept its timeline, a dump restored into its own cluster.
create function tenure.rehome(_leap boolean) returns void language plpgsql as $$
declare
  home record;
  here bigint;
  next smallint;
  p record;
begin
  -- Waits for every transaction that has written to the journal: its rows belong to the era that ends here.
  lock table tenure.journal in share row exclusive mode;
  select * into home from tenure.home h order by h.era desc limit 1 for update;
  select c.system_identifier into here from pg_control_system() c;
  if home.system_identifier = here and not _leap then
    raise exception 'this database is at home already; `tenure migrate rehome --leap` is for a copy or a restored backup' using errcode = 'TN409';
  end if;
  next := home.era + 1;
  insert into tenure.home (era, system_identifier, timeline, journal_after)
  values (next, here, tenure.timeline(), (select coalesce(max(g.id), 0) from tenure.journal g));
  execute replace(pg_get_functiondef('tenure.stamp_journal'::regproc), 'new.era := ' || home.era || ';', 'new.era := ' || next || ';');
  for p in select * from tenure.positions() o where o.reset is not null loop
    execute p.reset;
  end loop;
  perform tenure.leap_numbers(0, 1, true);
  insert into tenure.journal (at, event, jobs, actor, reason, details)
  values (clock_timestamp(), 9, '{}', session_user,
    case when home.system_identifier = here then 'a copy or a restored backup: numbers leap' else 'restored into another cluster: numbers leap' end,
    jsonb_build_object('era', next));
end $$;
