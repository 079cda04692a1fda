-- list_journal.sql: rows of the journal that match among the next ones below an id, newest first. Every answer has the
-- columns looked_at, last_id and last_at of the walk: it stops at the last row it answers when it answers enough. A row
-- without an id: none matched. last_id null: there is nothing below.
--   $1 below this id, $2 look at so many, $3 answer so many, $4 acts only, $5 events or null, $6 actor or null, $7 job or null,
--   $8 subject or null, $9 its names in details, $10 since or null, $11 until or null
with looked as materialized (
  -- One of the two is not run at all: a generic plan knows the partial index of acts, too.
  (select g.id, g.at, g.worker, g.actor, g.event, g.lease, g.jobs, g.reason, g.details
  from tenure.journal g where not $4::boolean and g.id < $1::bigint order by g.id desc limit $2::bigint)
  union all
  (select g.id, g.at, g.worker, g.actor, g.event, g.lease, g.jobs, g.reason, g.details
  from tenure.journal g where $4 and (g.lease is null or g.worker is null) and g.id < $1 order by g.id desc limit $2)
), wanted as materialized (
  select l.id, l.at, l.worker, l.actor, l.event, l.lease, l.jobs, l.reason, l.details from looked l
  where ($5::smallint[] is null or l.event = any ($5))
    and ($6::text is null or l.actor = $6)
    and ($7::uuid is null or $7 = any (l.jobs))
    and ($8::text is null or exists (select from unnest($9::text[]) n (name) where l.details ->> n.name = $8))
    and ($10::timestamptz is null or l.at >= $10)
    and ($11::timestamptz is null or l.at < $11)
  order by l.id desc limit $3::bigint
), stop as materialized (
  select case when count(*) = $3 then min(w.id) else 0 end as id from wanted w
)
select w.id, w.at, w.worker, w.actor, w.event, w.lease, w.jobs, w.reason, case when w.details is not null then tenure.json_shown(w.details) end as details, s.looked_at, s.last_id, s.last_at
from (
  select count(*) as looked_at, min(l.id) as last_id, min(l.at) as last_at from looked l where l.id >= (select id from stop)
) s
left join wanted w on true
order by w.id desc
