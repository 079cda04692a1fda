-- save_operation.sql: write down how far an operation is. Zero rows: it is further already, or there is none.
--   $1 id, $2 cursor, $3 total, $4 done, $5 refused, $6 last refusal, $7 finished, $8 now or null for the clock
update tenure.operation
set cursor = $2::uuid, total = $3::bigint, done = $4::bigint, refused = $5::bigint, last_refusal = $6::text,
  finished_at = case when $7::boolean then coalesce($8::timestamptz, clock_timestamp()) end
where id = $1::uuid and finished_at is null and done + refused <= $4::bigint + $5::bigint
returning id
