-- guards_sqlite: events are added and never changed, what was sealed or published stays as it is, and states go forward.
-- An `insert or replace` deletes without asking a trigger about it, so the insert is asked. Who inserts what may be there
-- looks first: this comes before `on conflict do nothing`.
create trigger if not exists passport_event_update before update on passport_event
begin select raise(abort, 'events are added and never changed'); end;

create trigger if not exists passport_event_delete before delete on passport_event
begin select raise(abort, 'events are added and never removed'); end;

create trigger if not exists passport_event_replace before insert on passport_event when exists (
  select 1 from passport_event e
  where e.tenant_id = new.tenant_id
    and (e.event_id = new.event_id or (e.event_type = new.event_type and e.aggregate_id = new.aggregate_id))
    and (e.event_id, e.event_type, e.aggregate_type, e.aggregate_id, e.occurred_at, e.payload, e.job_id, e.fence) is not
      (new.event_id, new.event_type, new.aggregate_type, new.aggregate_id, new.occurred_at, new.payload, new.job_id,
       new.fence))
begin select raise(abort, 'events are added and never changed'); end;

create trigger if not exists passport_snapshot_update before update on passport_snapshot when old.status = 'SEALED'
begin select raise(abort, 'a sealed snapshot stays as it is'); end;

create trigger if not exists passport_snapshot_delete before delete on passport_snapshot when old.status = 'SEALED'
begin select raise(abort, 'a sealed snapshot stays where it is'); end;

create trigger if not exists passport_snapshot_replace before insert on passport_snapshot when exists (
  select 1 from passport_snapshot s
  where s.tenant_id = new.tenant_id and s.snapshot_id = new.snapshot_id and s.status = 'SEALED')
begin select raise(abort, 'a sealed snapshot stays as it is'); end;

create trigger if not exists passport_document_fact_insert before insert on passport_document_fact when exists (
  select 1 from passport_snapshot s
  where s.tenant_id = new.tenant_id and s.document_version_id = new.document_version_id and s.status = 'SEALED')
begin select raise(abort, 'a sealed snapshot stays as it is'); end;

create trigger if not exists passport_document_fact_update before update on passport_document_fact when exists (
  select 1 from passport_snapshot s
  where s.status = 'SEALED' and (s.tenant_id, s.document_version_id)
    in (values (old.tenant_id, old.document_version_id), (new.tenant_id, new.document_version_id)))
begin select raise(abort, 'a sealed snapshot stays as it is'); end;

create trigger if not exists passport_document_fact_delete before delete on passport_document_fact when exists (
  select 1 from passport_snapshot s
  where s.tenant_id = old.tenant_id and s.document_version_id = old.document_version_id and s.status = 'SEALED')
begin select raise(abort, 'a sealed snapshot stays as it is'); end;

create trigger if not exists passport_rule_package_update before update on passport_rule_package
when old.status = 'PUBLISHED'
begin select raise(abort, 'a published rule package stays as it is'); end;

create trigger if not exists passport_rule_package_delete before delete on passport_rule_package
when old.status = 'PUBLISHED'
begin select raise(abort, 'a published rule package stays where it is'); end;

create trigger if not exists passport_rule_package_replace before insert on passport_rule_package when exists (
  select 1 from passport_rule_package r
  where r.tenant_id = new.tenant_id and r.rules_id = new.rules_id and r.status = 'PUBLISHED')
begin select raise(abort, 'a published rule package stays as it is'); end;

create trigger if not exists passport_version_forward before update on passport_version
when old.status <> new.status
  and (old.status, new.status) not in (values ('COMPILED', 'SIGNED'), ('SIGNED', 'LABELED'))
begin select raise(abort, 'a version goes from COMPILED to SIGNED to LABELED'); end;

create trigger if not exists passport_version_replace before insert on passport_version when exists (
  select 1 from passport_version v
  where v.tenant_id = new.tenant_id and v.passport_version_id = new.passport_version_id)
begin select raise(abort, 'a version goes from COMPILED to SIGNED to LABELED'); end;

-- A later attempt, of a job that somebody revived, may find it FAILED.
create trigger if not exists passport_delivery_forward before update on passport_webhook_delivery
when old.status = 'DELIVERED' and new.status <> 'DELIVERED'
  or old.status = 'FAILED' and new.status = 'PENDING' and new.fence <= old.fence
begin select raise(abort, 'a delivery goes from PENDING to DELIVERED or FAILED'); end;

create trigger if not exists passport_delivery_replace before insert on passport_webhook_delivery when exists (
  select 1 from passport_webhook_delivery d
  where d.tenant_id = new.tenant_id and d.webhook_delivery_id = new.webhook_delivery_id)
begin select raise(abort, 'a delivery goes from PENDING to DELIVERED or FAILED'); end;
