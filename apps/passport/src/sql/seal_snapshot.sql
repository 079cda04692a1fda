-- seal_snapshot: vouches for an open snapshot whose document was parsed; zero rows: it is sealed, not parsed, or not there.
update passport_snapshot set status = 'SEALED', sealed_at = $3
where tenant_id = $1 and snapshot_id = $2 and status = 'OPEN' and exists (
  select 1 from passport_document_version d
  where d.tenant_id = passport_snapshot.tenant_id and d.document_version_id = passport_snapshot.document_version_id
    and d.parsed_at is not null)
