-- refuse_endings.sql: how attempts ended that a report found ended or gone; what came too late is written down.
-- One row per job: `how` is null where the grant is unknown, or never was this worker's.
--   $1 worker, $2 lease, $3 jobs, $4 the hows reported, $5 now or null for the clock
--
-- A report is answered by its own ending, whose reply was lost, or by the one the rules made of it
-- (tenure_store::lease::Ending::is_answered_by); anything else is refused. A refusal is only written down for a job that
-- is there: whoever invents ids could otherwise fill the record without end.
with found as materialized (
  select i.job, i.said, a.how,
    coalesce(a.how = i.said or (i.said in (2, 6, 7) and a.how = 5) or (i.said = 2 and a.how = 4), false) as answered
  from unnest($3::uuid[], $4::smallint[]) i (job, said)
  left join lateral (
    select a.how from tenure.attempt a
    where a.job = i.job
      and a.lease = $2::bigint
      and (a.worker = $1::int or a.worker is null)
    offset 0
  ) a on true
), noted as (
  insert into tenure.journal (at, worker, event, lease, jobs, details)
  select coalesce($5::timestamptz, clock_timestamp()), $1::int, 20, $2::bigint, array_agg(f.job order by f.job),
    jsonb_build_object('reported', (array['succeeded', 'retry', 'failed', 'dead', 'canceled', 'snoozed', 'released'])[f.said])
  from found f
  where not f.answered and (select count(*) from tenure.job j where j.id = f.job) = 1
  group by f.said
  order by f.said
)
-- What ended before was written by another transaction: the answer waits until the synchronous standbys have it.
select job, how, answered, tenure.await_standbys() as confirmed from found
