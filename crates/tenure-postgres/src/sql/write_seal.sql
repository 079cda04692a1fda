-- write_seal.sql: close the chain. A second seal after the same one is refused by the unique predecessor.
--   $1 no, $2 era, $3 before, $4 floor, $5 snapshot or null for the rest of an ended era, $6 after, $7 upto, $8 rows, $9 prev, $10 hash,
--   $11 when, by the clock that wrote the rows
insert into tenure.seal (no, era, before, floor, snapshot, after, upto, rows, prev, hash, sealed_at)
values ($1, $2, $3::text::pg_snapshot, $4, $5::text::pg_snapshot, $6, $7, $8, $9, $10, $11::timestamptz)
