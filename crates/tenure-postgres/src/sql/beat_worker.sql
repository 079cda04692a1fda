-- beat_worker.sql: write down what a worker is and does now; the row is what it is told to do. Zero rows: nobody was given this number.
--   $1 worker, $2 state, $3 running, $4 reporting, $5 version, $6 host, $7 pid, $8 queues, $9 their slots, $10 now or null for the clock
update tenure.worker
set seen_at = coalesce($10::timestamptz, clock_timestamp()), state = $2::text, running = $3::bigint, reporting = $4::bigint,
  version = $5::text, host = $6::text, pid = $7::bigint, queues = $8::text[], slots = $9::bigint[]
where id = $1::int
returning told
