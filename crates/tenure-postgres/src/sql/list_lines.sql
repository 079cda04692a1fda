-- list_lines.sql: lines of a queue behind one of them, whether each has something due, and its weight.
-- Zero rows: nothing waits there. As many as were asked for: there may be more.
--   $1 queue, $2 the line to begin behind or null, $3 limit, $4 now or null for the clock
--
-- Each step finds the next line by one look into the index, however many jobs wait in it. No line holds a control
-- character, so what follows the line to begin behind is the first one above it.
with recursive q as materialized (
  select id, coalesce($4::timestamptz, statement_timestamp()) as due from tenure.queue where name = $1::text
), step as (
  select (
    select r.line from tenure.ready r where r.queue = (select id from q) and r.line >= coalesce($2::text || e'\x01', '')
    order by r.queue, r.line limit 1
  ) as line, 1 as n
  union all
  select (
    select r.line from tenure.ready r where r.queue = (select id from q) and r.line > s.line order by r.queue, r.line limit 1
  ), s.n + 1
  from step s where s.line is not null and s.n < $3::bigint
)
select s.line, d.due, case when w.weighted then tenure.line_weight(s.line) else 1 end as weight
from step s
cross join (select exists (select from tenure.gate_rule where weight <> 1) as weighted) w
cross join lateral (
  select exists (
    select from unnest('{0,1,2,3}'::smallint[]) p (priority) cross join lateral (
      select from tenure.ready r
      where r.queue = (select id from q) and r.line = s.line and r.priority = p.priority and r.run_at <= (select due from q)
      limit 1
    ) r
  ) as due
) d
where s.line is not null
order by s.n
