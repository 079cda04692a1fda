-- list_seals.sql: seals in order. Zero rows: there are no more.
--   $1 after this number, $2 limit
select no, era, before::text as before, floor, snapshot::text as snapshot, after, upto, rows, prev, hash, sealed_at
from tenure.seal where no > $1::bigint order by no limit $2::bigint
