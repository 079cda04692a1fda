-- guards_postgres: events are added and never changed, what was sealed or published stays as it is, and states go forward.
-- Made once: a trigger that is made again would wait for whoever writes, and everybody for it.
do $made$
begin
  if exists (select from pg_trigger where tgname = 'passport_delivery_forward'
             and tgrelid = 'passport_webhook_delivery'::regclass) then
    return;
  end if;

  create or replace function passport_refuse() returns trigger language plpgsql as $$
  begin
    raise exception '% of % is refused: %', lower(tg_op), tg_table_name, tg_argv[0] using errcode = 'check_violation';
  end $$;

  create or replace function passport_refuse_sealed() returns trigger language plpgsql as $$
  begin
    if exists (select from passport_snapshot s where s.status = 'SEALED' and (s.tenant_id, s.document_version_id)
               in ((old.tenant_id, old.document_version_id), (new.tenant_id, new.document_version_id))) then
      raise exception '% of % is refused: %', lower(tg_op), tg_table_name, tg_argv[0] using errcode = 'check_violation';
    end if;
    if tg_op = 'DELETE' then
      return old;
    end if;
    return new;
  end $$;

  create or replace trigger passport_event_append_only before update or delete or truncate on passport_event
    for each statement execute function passport_refuse('events are added and never changed');

  create or replace trigger passport_snapshot_sealed before update or delete on passport_snapshot
    for each row when (old.status = 'SEALED') execute function passport_refuse('a sealed snapshot stays as it is');
  create or replace trigger passport_snapshot_truncate before truncate on passport_snapshot
    for each statement execute function passport_refuse('a sealed snapshot stays as it is');
  create or replace trigger passport_document_fact_sealed before insert or update or delete on passport_document_fact
    for each row execute function passport_refuse_sealed('a sealed snapshot stays as it is');
  create or replace trigger passport_document_fact_truncate before truncate on passport_document_fact
    for each statement execute function passport_refuse('a sealed snapshot stays as it is');

  create or replace trigger passport_rule_package_published before update or delete on passport_rule_package
    for each row when (old.status = 'PUBLISHED')
    execute function passport_refuse('a published rule package stays as it is');
  create or replace trigger passport_rule_package_truncate before truncate on passport_rule_package
    for each statement execute function passport_refuse('a published rule package stays as it is');

  create or replace trigger passport_version_forward before update on passport_version
    for each row when (old.status <> new.status
      and (old.status, new.status) not in (('COMPILED', 'SIGNED'), ('SIGNED', 'LABELED')))
    execute function passport_refuse('a version goes from COMPILED to SIGNED to LABELED');
  -- A later attempt, of a job that somebody revived, may find it FAILED.
  create or replace trigger passport_delivery_forward before update on passport_webhook_delivery
    for each row when (old.status = 'DELIVERED' and new.status <> 'DELIVERED'
      or old.status = 'FAILED' and new.status = 'PENDING' and new.fence <= old.fence)
    execute function passport_refuse('a delivery goes from PENDING to DELIVERED or FAILED');
end $made$;
