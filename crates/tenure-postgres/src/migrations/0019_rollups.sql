-- 0019_rollups: what happened, summed by time, tenant, queue and kind, so that no chart counts jobs (tenure_store::rollup).

-- step: 0 a minute, 1 a quarter of an hour, 2 two hours, 3 all of it, at 1970. run and wait: counts by the bounds of
-- tenure_core::histogram. No index names what changes: an update stays on its page. Every sum is there twice: for its
-- tenant and for tenant 0, who is all of them, so that a chart of everything does not read a line for each tenant.
create table tenure.rollup (
  step smallint not null check (step between 0 and 3),
  at timestamptz not null,
  tenant int not null,
  queue int not null,
  kind text collate "C" not null check (length(kind) between 1 and 100),
  claimed bigint not null,
  succeeded bigint not null,
  retried bigint not null,
  failed bigint not null,
  dead bigint not null,
  canceled bigint not null,
  snoozed bigint not null,
  released bigint not null,
  lost bigint not null,
  run bigint[] not null check (cardinality(run) = 22),
  run_micros bigint not null,
  wait bigint[] not null check (cardinality(wait) = 22),
  wait_micros bigint not null,
  primary key (step, at, tenant, queue, kind)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index rollup_tenant on tenure.rollup (tenant, step, at);

-- How attempts ended that passed a gate, as far as that tells how the gate did.
create table tenure.gate_rollup (
  step smallint not null check (step between 0 and 3),
  at timestamptz not null,
  tenant int not null,
  gate text collate "C" not null,
  ended bigint not null,
  unhealthy bigint not null check (unhealthy between 0 and ended),
  primary key (step, at, tenant, gate)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
create index gate_rollup_tenant on tenure.gate_rollup (tenant, step, at);

-- How far the journal is summed: all seals before `seal`, and of that one the rows up to `after`. Who holds it folds.
create table tenure.rollup_cursor (
  seal bigint not null,
  after bigint not null
);
create unique index rollup_cursor_one on tenure.rollup_cursor ((true));
insert into tenure.rollup_cursor (seal, after) values (1, 0);

create function tenure.add_counts(_a bigint[], _b bigint[]) returns bigint[] language sql immutable parallel safe as $$
  select array_agg(u.a + u.b order by u.place) from unnest(_a, _b) with ordinality u (a, b, place)
$$;

create function tenure.tally_one(_counts bigint[], _bucket int, _count bigint) returns bigint[] language plpgsql immutable parallel safe as $$
begin
  if _bucket is not null then _counts[_bucket] := _counts[_bucket] + _count; end if;
  return _counts;
end $$;

-- Counts by bucket, as an array.
create aggregate tenure.tally (int, bigint) (sfunc = tenure.tally_one, stype = bigint[], initcond = '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}');

-- Sums up a batch of what was sealed; answers how many rows of the journal it has passed. Rows that say nothing of an
-- attempt are passed as well, and jobs that were pruned are left out. Small seals are taken together. _limit: jobs, about.
--
-- What happened to one job is looked up by primary keys, one by one: `offset 0` leaves no other way to join. When an
-- attempt began is told by the claim's row, once for all that ended together: looking up each would cost as much as all
-- the rest. So would sorting them.
create function tenure.fold_rollups(_limit int, _bounds bigint[], _now timestamptz) returns bigint language plpgsql
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set jit = off as $$
declare
  rows_max constant int := 1000;
  small_max constant int := 64;
  dropped_max constant int := 1000;
  place record;
  first record;
  last record;
  passed record;
  from_id bigint;
  moment timestamptz := coalesce(_now, clock_timestamp());
begin
  select c.seal, c.after into place from tenure.rollup_cursor c for update skip locked;
  if not found then return 0; end if;

  delete from tenure.rollup where ctid = any (array(
    select o.ctid from (values (0, interval '2 days'), (1, interval '14 days'), (2, interval '400 days')) k (step, keep)
    cross join lateral (select r.ctid from tenure.rollup r where r.step = k.step and r.at < moment - k.keep limit dropped_max) o));
  delete from tenure.gate_rollup where ctid = any (array(
    select o.ctid from (values (0, interval '2 days'), (1, interval '14 days'), (2, interval '400 days')) k (step, keep)
    cross join lateral (select r.ctid from tenure.gate_rollup r where r.step = k.step and r.at < moment - k.keep limit dropped_max) o));

  -- Seals in between were dropped with their rows: what is left begins here.
  select * into first from tenure.seal s where s.no >= place.seal order by s.no limit 1;
  if not found then return 0; end if;
  if first.no > place.seal then place.after := 0; end if;
  last := first;
  -- Seals that each finish what they began cover together what is between the marks of the first and of the last one.
  if place.after = 0 and first.after = 0 and first.upto >= first.floor and first.snapshot is not null then
    select * into last from tenure.seal s where s.no = (
      select n.no from (
        select t.no, t.era, t.snapshot, t.upto >= t.floor as finished, sum(t.rows) over (order by t.no) as rows
        from (select * from tenure.seal o where o.no >= first.no order by o.no limit small_max) t
      ) n
      where n.no = first.no or (n.rows <= small_max and n.finished and n.era = first.era and n.snapshot is not null)
      order by n.no desc limit 1
    );
  end if;
  from_id := greatest(place.after, first.after);

  with late as materialized (
    select * from tenure.late_rows(first.era, first.before, last.snapshot, from_id, least(first.floor, last.upto), rows_max)
  ), page as materialized (
    select g.id, date_bin('1 minute', g.at, 'epoch') as minute, g.at, g.event, g.lease, g.jobs
    from (
      select * from late
      union all
      (select * from tenure.journal
       where id > greatest(from_id, first.floor) and id <= last.upto and era = first.era
         and (last.snapshot is null or pg_visible_in_snapshot(xid, last.snapshot))
       order by id limit rows_max - (select count(*) from late))
    ) g
    order by g.id
    limit rows_max
  ), taken as materialized (
    select p.*, case when p.event between 11 and 14 then (select p.at - c.at from tenure.journal c where c.lease = p.lease and c.event = 1 limit 1) end as run
    from (select *, sum(cardinality(jobs)) over (order by id) - cardinality(jobs) as ahead from page) p
    where p.ahead < _limit or last.no > first.no
  ), told as (
    select g.minute, g.event, j.tenant, j.queue, j.kind, j.gate, (date_part('epoch', t.run) * 1000000)::bigint as run, (date_part('epoch', t.wait) * 1000000)::bigint as wait
    from taken g
    cross join lateral unnest(g.jobs) u (job)
    cross join lateral (
      select b.tenant, b.queue, b.kind, greatest(b.run_at, b.created_at) as due,
        case when strpos(b.line, '/') > 0 then substr(b.line, strpos(b.line, '/') + 1) end as gate
      from tenure.job b where b.id = u.job offset 0
    ) j
    left join lateral (
      select a.ended_at - a.started_at as run from tenure.attempt a where g.event between 11 and 14 and g.run is null and a.job = u.job and a.lease = g.lease offset 0
    ) a on true
    cross join lateral (
      -- Its first start: nothing of it has ended before, and it did not wait to be opened.
      select case when g.event between 11 and 14 then coalesce(g.run, a.run) end as run,
        case when g.event = 1 and not exists (select from tenure.attempt o where o.job = u.job and o.lease < g.lease)
            and not exists (select from tenure.journal o where o.jobs[1] = u.job and o.lease is null and cardinality(o.jobs) = 1 and o.event = 4)
          then g.at - j.due end as wait
      offset 0
    ) t
    where g.event = 1 or g.event between 11 and 18
  ), counted as materialized (
    -- A bound belongs to the bucket below it.
    select minute, event, tenant, queue, kind, gate, width_bucket(run - 1, _bounds) + 1 as run_bucket,
      width_bucket(wait - 1, _bounds) + 1 as wait_bucket,
      count(*) as count, sum(greatest(run, 0)) as run_micros, sum(greatest(wait, 0)) as wait_micros
    from told
    group by 1, 2, 3, 4, 5, 6, 7, 8
  ), stepped as materialized (
    select s.step, w.at, o.whose, c.* from counted c
    cross join (values (0, interval '1 minute', interval '2 days'), (1, interval '15 minutes', interval '14 days'), (2, interval '2 hours', interval '400 days'), (3, null, null)) s (step, width, keep)
    cross join lateral (select coalesce(date_bin(s.width, c.minute, 'epoch'), 'epoch') as at) w
    cross join lateral (values (c.tenant), (0)) o (whose)
    where s.keep is null or w.at >= moment - s.keep
  ), gates as (
    insert into tenure.gate_rollup as t (step, at, tenant, gate, ended, unhealthy)
    select step, at, whose, gate, sum(count), coalesce(sum(count) filter (where event <> 11), 0)
    from stepped where gate is not null and event between 11 and 14
    group by step, at, whose, gate
    on conflict (step, at, tenant, gate) do update set ended = t.ended + excluded.ended, unhealthy = t.unhealthy + excluded.unhealthy
  ), lines as (
    insert into tenure.rollup as t
      (step, at, tenant, queue, kind, claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost, run, run_micros, wait, wait_micros)
    select step, at, whose, queue, kind,
      coalesce(sum(count) filter (where event = 1), 0), coalesce(sum(count) filter (where event = 11), 0), coalesce(sum(count) filter (where event = 12), 0),
      coalesce(sum(count) filter (where event = 13), 0), coalesce(sum(count) filter (where event = 14), 0), coalesce(sum(count) filter (where event = 15), 0),
      coalesce(sum(count) filter (where event = 16), 0), coalesce(sum(count) filter (where event = 17), 0), coalesce(sum(count) filter (where event = 18), 0),
      tenure.tally(run_bucket, count), coalesce(sum(run_micros), 0), tenure.tally(wait_bucket, count), coalesce(sum(wait_micros), 0)
    from stepped
    group by step, at, whose, queue, kind
    on conflict (step, at, tenant, queue, kind) do update set claimed = t.claimed + excluded.claimed, succeeded = t.succeeded + excluded.succeeded,
      retried = t.retried + excluded.retried, failed = t.failed + excluded.failed, dead = t.dead + excluded.dead, canceled = t.canceled + excluded.canceled,
      snoozed = t.snoozed + excluded.snoozed, released = t.released + excluded.released, lost = t.lost + excluded.lost,
      run = tenure.add_counts(t.run, excluded.run), run_micros = t.run_micros + excluded.run_micros,
      wait = tenure.add_counts(t.wait, excluded.wait), wait_micros = t.wait_micros + excluded.wait_micros
  )
  select count(*) as rows, max(id) as upto, (select count(*) from page) as read into passed from taken;

  if passed.read > passed.rows or passed.read = rows_max then
    update tenure.rollup_cursor set seal = first.no, after = passed.upto;
  else
    update tenure.rollup_cursor set seal = last.no + 1, after = 0;
  end if;
  return passed.rows;
end $$;
