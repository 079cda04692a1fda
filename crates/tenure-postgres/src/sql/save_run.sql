-- save_run.sql: where a run stands now. The caller holds it.
--   $1 id, $2 state, $3 sealed, $4 total, $5 done, $6 failed, $7 canceled, $8 fan, $9 consolidate or null to leave it, $10 started at,
--   $11 finished at, $12 last error, $13 expired
update tenure.run r set state = $2::smallint, sealed = $3::boolean, total = $4::bigint, done = $5::bigint, failed = $6::bigint, canceled = $7::bigint, fan = $8::smallint,
  consolidate = coalesce($9::uuid, r.consolidate), started_at = $10::timestamptz, finished_at = $11::timestamptz, last_error = $12::text::jsonb, expired = $13::boolean
where r.id = $1::uuid
