-- 0002_guards: the record cannot be rewritten by accident, and jobs never change.
-- (Who may switch triggers off can still do it; the seals are there to find that out.)

create function tenure.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% on tenure.% is refused: its rows are written once', tg_op, tg_table_name using errcode = 'TN409';
end $$;

create trigger journal_is_append_only before update or delete on tenure.journal
  for each row execute function tenure.refuse_change();
create trigger journal_is_not_truncated before truncate on tenure.journal
  for each statement execute function tenure.refuse_change();
create trigger seal_is_append_only before update or delete on tenure.seal
  for each row execute function tenure.refuse_change();
create trigger seal_is_not_truncated before truncate on tenure.seal
  for each statement execute function tenure.refuse_change();
create trigger job_is_immutable before update on tenure.job
  for each row execute function tenure.refuse_change();

-- A requeue clears `final`; nothing else of an attempt ever changes. The record is compared byte by byte, so a new column is
-- covered without being named here.
create function tenure.refuse_change_of_attempt() returns trigger language plpgsql as $$
declare
  final_after boolean := new.final;
begin
  new.final := old.final;
  if final_after or new *<> old then
    raise exception 'UPDATE on tenure.attempt is refused: its rows are written once, and only a requeue clears `final`' using errcode = 'TN409';
  end if;
  new.final := false;
  return new;
end $$;

create trigger attempt_is_written_once before update on tenure.attempt
  for each row execute function tenure.refuse_change_of_attempt();

-- A writer that names its own transaction id, era or id could put a row where no seal looks. A named xid is refused rather than
-- replaced: without the column's default the row's id may be drawn before its transaction has an xid. An id is refused unless
-- this session drew it last (`overriding system value` names another one). Re-homing replaces this function by one that stamps
-- the next era.
create function tenure.stamp_journal() returns trigger language plpgsql as $$
begin
  if new.xid <> pg_current_xact_id() or new.id <> currval('tenure.journal_id_seq') then
    raise exception 'tenure.journal.xid is % and the transaction is %, id is % and the number drawn is %: leave both columns out',
      new.xid, pg_current_xact_id(), new.id, currval('tenure.journal_id_seq') using errcode = 'TN409';
  end if;
  new.era := 1;
  return new;
end $$;

create trigger journal_is_stamped before insert on tenure.journal
  for each row execute function tenure.stamp_journal();

-- Rows that transactions in flight at one snapshot wrote and that are visible in a later one (null: in any), with ids above
-- _after and up to _until, in order. One sorted index range for each such transaction, merged: reads as many rows as it
-- answers, and one more for each transaction, however large the transactions are.
create function tenure.late_rows(_era smallint, _in_flight pg_snapshot, _visible pg_snapshot, _after bigint, _until bigint, _limit bigint)
  returns setof tenure.journal language plpgsql stable rows 10
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_incremental_sort = off set jit = off as $$
declare branches text; begin
  if _until <= _after or _limit <= 0 then return; end if;
  select string_agg(format('(select * from tenure.journal g where g.xid = %L::xid8 and g.era = $1 and g.id > $2 and g.id <= $3 order by g.id)', x.xid), ' union all ')
  into branches
  from pg_snapshot_xip(_in_flight) x (xid)
  where (_visible is null or pg_visible_in_snapshot(x.xid, _visible))
    and exists (select from tenure.journal g where g.xid = x.xid and g.id > _after and g.id <= _until);
  if branches is null then return; end if;
  return query execute 'select * from (' || branches || ') late order by late.id limit $4' using _era, _after, _until, _limit;
end $$;

-- Numbers that are known outside of the database grow for ever: leases, rows of the journal, workers. A standby that is
-- promoted may lag, and its sequences with it. So before the first number is drawn on a new timeline, the sequences leap.
-- The check is a trigger: no session, pooler or client can draw a number without it.
create function tenure.follow_timeline() returns void language plpgsql as $$
declare
  known bigint;
begin
  select h.timeline into known from tenure.home h order by h.era desc limit 1;
  if known <> tenure.timeline() then perform tenure.leap_to_timeline(); end if;
end $$;

-- The same before a statement inserts; written out, because a nested call costs as much as the check.
create function tenure.follow_timeline_first() returns trigger language plpgsql as $$
declare
  known bigint;
begin
  select h.timeline into known from tenure.home h order by h.era desc limit 1;
  if known <> tenure.timeline() then perform tenure.leap_to_timeline(); end if;
  return null;
end $$;

create trigger lease_follows_timeline before insert on tenure.lease
  for each statement execute function tenure.follow_timeline_first();
create trigger journal_follows_timeline before insert on tenure.journal
  for each statement execute function tenure.follow_timeline_first();
create trigger worker_follows_timeline before insert on tenure.worker
  for each statement execute function tenure.follow_timeline_first();

-- A lease number for an outcome without a lease. No other statement may draw from the sequence by itself.
create function tenure.draw_lease_no() returns bigint language plpgsql as $$
begin
  perform tenure.follow_timeline();
  return nextval('tenure.lease_no_seq');
end $$;
