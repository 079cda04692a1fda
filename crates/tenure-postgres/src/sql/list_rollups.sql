-- list_rollups.sql: sums of what happened, by time the oldest first, otherwise the busiest first. Zero rows: nothing did.
--   $1 tenant that sees it, $2 step, $3 since, $4 until, $5 queue, $6 kind, then whether a line has a $7 time, $8 queue,
--   $9 kind, $10 tenant; $11 limit
--
-- One of the two branches is never begun: sums of each tenant are found by their time, those of one by the tenant, and
-- those of all together, where nobody asks for tenants, are the sums of tenant 0.
select s.at, q.name as queue, s.kind, t.name as tenant,
  s.counters, s.run, s.run_micros, s.wait, s.wait_micros
from (
  select case when $7::boolean then r.at end as at, case when $8::boolean then r.queue end as queue, case when $9::boolean then r.kind end as kind,
    case when $10::boolean then r.tenant end as tenant, sum(r.claimed) as claimed,
    array[sum(r.claimed), sum(r.succeeded), sum(r.retried), sum(r.failed), sum(r.dead), sum(r.canceled), sum(r.snoozed), sum(r.released), sum(r.lost)]::bigint[] as counters,
    array[sum(r.run[1]), sum(r.run[2]), sum(r.run[3]), sum(r.run[4]), sum(r.run[5]), sum(r.run[6]), sum(r.run[7]), sum(r.run[8]), sum(r.run[9]), sum(r.run[10]), sum(r.run[11]),
    sum(r.run[12]), sum(r.run[13]), sum(r.run[14]), sum(r.run[15]), sum(r.run[16]), sum(r.run[17]), sum(r.run[18]), sum(r.run[19]), sum(r.run[20]), sum(r.run[21]), sum(r.run[22])]::bigint[] as run,
    sum(r.run_micros)::bigint as run_micros,
    array[sum(r.wait[1]), sum(r.wait[2]), sum(r.wait[3]), sum(r.wait[4]), sum(r.wait[5]), sum(r.wait[6]), sum(r.wait[7]), sum(r.wait[8]), sum(r.wait[9]), sum(r.wait[10]), sum(r.wait[11]),
    sum(r.wait[12]), sum(r.wait[13]), sum(r.wait[14]), sum(r.wait[15]), sum(r.wait[16]), sum(r.wait[17]), sum(r.wait[18]), sum(r.wait[19]), sum(r.wait[20]), sum(r.wait[21]), sum(r.wait[22])]::bigint[] as wait,
    sum(r.wait_micros)::bigint as wait_micros
  from (
    select e.at, e.queue, e.kind, e.tenant, e.claimed, e.succeeded, e.retried, e.failed, e.dead, e.canceled, e.snoozed, e.released, e.lost, e.run, e.run_micros, e.wait, e.wait_micros
    from tenure.rollup e where $1::text is null and $10::boolean and e.tenant <> 0 and e.step = $2::smallint and e.at >= $3::timestamptz and e.at < $4::timestamptz
    union all
    select e.at, e.queue, e.kind, e.tenant, e.claimed, e.succeeded, e.retried, e.failed, e.dead, e.canceled, e.snoozed, e.released, e.lost, e.run, e.run_micros, e.wait, e.wait_micros
    from tenure.rollup e
    where ($1::text is not null or not $10::boolean)
      and e.tenant = case when $1::text is null then 0 else (select o.id from tenure.tenant o where o.name = $1::text) end and e.step = $2::smallint and e.at >= $3::timestamptz and e.at < $4::timestamptz
  ) r
  where ($5::text is null or r.queue = (select q.id from tenure.queue q where q.name = $5::text))
    and ($6::text is null or r.kind = $6::text)
  group by 1, 2, 3, 4
) s
left join tenure.queue q on q.id = s.queue
left join tenure.tenant t on t.id = s.tenant
order by s.at, s.claimed desc, q.name collate "C", s.kind, t.name collate "C"
limit $11::bigint
