-- 0012_runs: what jobs say of their runs, and pages that commit with their rows.
--
-- The fold itself, who counts and decides, is tenure_core::run, driven by the library (fold.rs). Here is what happens in
-- the transactions of others: a sentence is inserted, a partition's own row moves, and nobody touches a run's row.

-- The three words of a page: run, partition, offset. Null for a job that is none.
create function tenure.page_of(_job uuid) returns table (run uuid, partition text, page_offset bigint) language sql stable as $$
  select left(j.part, 36)::uuid, substr(j.part, 38, length(j.part) - 38 - strpos(reverse(j.part), ':') + 1), right(j.part, strpos(reverse(j.part), ':') - 1)::bigint
  from tenure.job j where j.id = _job and strpos(j.part, ':') > 0
$$;

-- The job of a page, made after that of another page of its partition.
create function tenure.add_page(_after uuid, _job uuid, _part text, _now timestamptz) returns void language plpgsql as $$
declare j tenure.job; begin
  select * into j from tenure.job where id = _after;
  if not found then raise exception 'job % of a page is not known here', _after using errcode = 'TN404'; end if;
  if substr(_job::text, 15, 1) <> '7' or tenure.id_time(_job) not between _now - interval '1 day' and _now + interval '1 day' then
    raise exception 'id `%` is refused: a job id is a uuid of version 7 whose time is within a day of the store''s clock %', _job, _now using errcode = 'TN422';
  end if;
  insert into tenure.job (id, created_at, run_at, tenant, queue, line, priority, max_attempts, max_losses, kind, backoff, trace, part, kib, payload)
    values (_job, _now, _now, j.tenant, j.queue, j.line, j.priority, j.max_attempts, j.max_losses, j.kind, j.backoff, j.trace, _part, j.kib, j.payload) on conflict (id) do nothing;
  if not found then raise exception 'id `%` is refused: it is in use, make a new one', _job using errcode = 'TN422'; end if;
  insert into tenure.ready (run_at, job, queue, line, priority, kib) values (_now, _job, j.queue, j.line, j.priority, j.kib);
  perform tenure.wake(q.name) from tenure.queue q where q.id = j.queue;
end $$;

-- The rows of a page are there: its partition moves on behind them, to the next page or to its end, and the page's job is
-- completed, all in the caller's transaction. TN412 is raised when it is another page's turn, TN409 when the partition has
-- ended, and what tenure.complete_in raises: the transaction can only be rolled back then.
create function tenure.advance_page(
  _worker int, _lease bigint, _job uuid, _rows bigint, _next uuid default null, _now timestamptz default null, _usage jsonb default null, _health int default 1,
  _hold_ms bigint default null, _result jsonb default null)
  returns void language plpgsql as $$
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  at record;
  p tenure.partition;
begin
  select * into at from tenure.page_of(_job);
  if not found then
    raise exception 'job `%` is refused: only the job of a page advances', _job using errcode = 'TN422';
  end if;
  if _rows < 0 or (_rows = 0 and _next is not null) or at.page_offset + _rows > 281474976710656 then
    raise exception 'rows `%` is refused: an empty page is the last one: finish', _rows using errcode = 'TN422';
  end if;
  update tenure.partition q
    set next_offset = at.page_offset + _rows, rows = q.rows + _rows, job = coalesce(_next, q.job), finished = _next is null, state = greatest(q.state, 1),
      started_at = coalesce(q.started_at, moment), moved_at = moment
    where q.run = at.run and q.name = at.partition and q.job = _job and q.next_offset = at.page_offset
      -- One that has failed and was revived may not be counted as such yet.
      and q.state in (0, 1, 3) and not q.finished
      and (q.state <> 3 or exists (select from tenure.run r where r.id = q.run and r.state <> 4));
  if not found then
    select * into p from tenure.partition q where q.run = at.run and q.name = at.partition;
    if p.state in (0, 1) or (p.state = 3 and (p.job, p.next_offset) <> (_job, at.page_offset)) then
      raise exception 'offset_mismatch: %, %', p.next_offset, at.page_offset using errcode = 'TN412';
    end if;
    raise exception 'partition % of run % has ended', at.partition, at.run using errcode = 'TN409';
  end if;
  if _next is not null then
    perform tenure.add_page(_job, _next, format('%s:%s:%s', at.run, at.partition, at.page_offset + _rows), moment);
  end if;
  perform tenure.complete_in(_worker, _lease, _job, _result, _usage, _now, _health, _hold_ms);
end $$;

-- Whether it is this page's turn: `limit` then, or where its partition goes on, or neither: it has ended. The first page
-- starts its partition and its run.
create function tenure.begin_page(_job uuid, _now timestamptz default null) returns table (page_limit int, expected bigint) language plpgsql as $$
#variable_conflict use_column
declare
  moment timestamptz := coalesce(_now, clock_timestamp());
  at record;
  p tenure.partition;
begin
  select * into at from tenure.page_of(_job);
  if not found then return; end if;
  select * into p from tenure.partition q where q.run = at.run and q.name = at.partition and q.state in (0, 1, 3)
    and (q.state <> 3 or exists (select from tenure.run r where r.id = q.run and r.state <> 4));
  if not found then return; end if;
  if p.job <> _job or p.next_offset <> at.page_offset then
    return query select null::int, p.next_offset;
    return;
  end if;
  update tenure.partition q set state = 1, started_at = coalesce(q.started_at, moment), moved_at = moment where q.run = at.run and q.name = at.partition and q.state = 0;
  if found then
    insert into tenure.run_event (part, told, at) values (at.run::text, 9, moment);
  end if;
  return query select p.page_limit, null::bigint;
end $$;

-- Ends the partitions of a run that has ended, but for those whose page is just being committed; answers how many.
create function tenure.end_partitions(_run uuid, _now timestamptz) returns bigint language sql as $$
  with open as materialized (
    select p.run, p.name from tenure.partition p where p.run = _run and p.state in (0, 1) and not p.finished
    order by p.name for no key update skip locked
  ), ended as (
    update tenure.partition p set state = 4, moved_at = coalesce(_now, clock_timestamp())
    from open o where p.run = o.run and p.name = o.name returning 1
  )
  select count(*) from ended
$$;

-- Cancels some of what is left of a run; answers how many. A job may end by itself meanwhile.
create function tenure.sweep_run(_run uuid, _limit int, _now timestamptz default null) returns int language plpgsql as $$
declare left_over uuid; swept int := 0; late bigint := tenure.end_partitions(_run, _now); begin
  if late > 0 then update tenure.run set canceled = canceled + late where id = _run; end if;
  for left_over in
    select j.id from tenure.job j
    where j.part >= _run::text and j.part < _run::text || '~'
      and not exists (select from tenure.attempt a where a.job = j.id and a.final)
      and not exists (select from tenure.cancel_request c where c.job = j.id)
    limit _limit
  loop
    begin
      perform tenure.cancel(left_over, reason => 'its run has ended', now => _now);
    exception when sqlstate 'TN409' then null;
    end;
    swept := swept + 1;
  end loop;
  if swept = 0 and not exists (select from tenure.partition p where p.run = _run and p.state in (0, 1) and not p.finished) then
    update tenure.run set sweeping = false where id = _run;
  end if;
  return swept;
end $$;

-- For people: runs and partitions as they stand. What jobs said last may not be counted yet.
create view tenure.runs as
select r.id, t.name as tenant, r.owner, r.source, (array['queued', 'running', 'succeeded', 'failed', 'canceled'])[r.state + 1] as state, r.sealed,
  r.total, r.done, r.failed, r.canceled, r.consolidate, r.created_at, r.started_at, r.finished_at, r.deadline, r.last_error
from tenure.run r join tenure.tenant t on t.id = r.tenant;

create view tenure.partitions as
select p.run, p.name, (array['queued', 'running', 'succeeded', 'failed', 'canceled'])[p.state + 1] as state, p.next_offset, p.page_limit, p.rows, p.expected,
  p.job, p.last_error, p.created_at, p.started_at, p.moved_at
from tenure.partition p;
