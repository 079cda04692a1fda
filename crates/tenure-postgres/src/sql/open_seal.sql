-- open_seal.sql: the last seal, every era, and the snapshot of the next seal. Always one row; `no` is null before the first seal.
-- A snapshot of the server leaves out transactions in flight that are younger than every finished one. Here they are in the
-- list, up to the sealer's own transaction, which began after the last id was read.
--   $1 xid of the sealer, or null: the server's snapshot as it is, $2 now or null for the clock
select h.eras, h.begin_after, s.no, s.era, s.before::text as before, s.floor, s.snapshot::text as snapshot, s.after, s.upto, s.hash,
  pg_snapshot_xmin(c.here)::text || ':' || greatest(pg_snapshot_xmax(c.here), $1::text::xid8) || ':' || coalesce((
    select string_agg(f.xid::text, ',' order by f.xid) from (
      select x.xid::text::bigint as xid from pg_snapshot_xip(c.here) x (xid)
      union all
      select g.xid from generate_series(pg_snapshot_xmax(c.here)::text::bigint, $1::text::bigint - 1) g (xid)
    ) f
  ), '') as now,
  coalesce($2::timestamptz, clock_timestamp()) as moment
from (select array_agg(era order by era) as eras, array_agg(journal_after order by era) as begin_after from tenure.home) h
cross join (select pg_current_snapshot() as here) c
left join (
  select l.no, l.era, l.before, l.floor, l.snapshot, l.after, l.upto, l.hash from tenure.seal l order by l.no desc limit 1
) s on true
