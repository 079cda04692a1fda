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

-- A writer that names its own transaction id or era could put a row where no seal looks any more. Re-homing replaces this
-- function by one that stamps the next era.
create function tenure.stamp_journal() returns trigger language plpgsql as $$
begin
  new.xid := pg_current_xact_id();
  new.era := 1;
  return new;
end $$;

create trigger journal_is_stamped before insert on tenure.journal
  for each row execute function tenure.stamp_journal();
