-- write_seal.sql: close the chain. A second seal after the same one is refused by the unique predecessor.
--   $1 no, $2 era, $3 snapshot or null for the rest of an ended era, $4 rows, $5 prev, $6 hash
insert into tenure.seal (no, era, snapshot, rows, prev, hash) values ($1, $2, $3::text::pg_snapshot, $4, $5, $6)
