-- open_seal.sql: the last seal and the boundary of the next one. Always one row; `no` is null before the first seal.
select (select max(era) from tenure.home) as era, pg_current_snapshot()::text as snapshot, s.no, s.era as last_era, s.snapshot::text as last_snapshot, s.hash
from (select 1) one
left join (select * from tenure.seal order by no desc limit 1) s on true
