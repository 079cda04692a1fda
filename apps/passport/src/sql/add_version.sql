-- add_version: a passport version that was compiled; zero rows: it was compiled before, and stays.
insert into passport_version
  (tenant_id, passport_version_id, passport_id, snapshot_id, rules_id, build_id, issued_at, status,
   payload, payload_hash, proof_root, receipt, receipt_hash, compiled_at)
values ($1, $2, $3, $4, $5, $6, $7, 'COMPILED', $8, $9, $10, $11, $12, $13)
on conflict do nothing
