-- count_endings.sql: how many attempts ended how since then, by queue and kind. Zero rows: none did.
--   $1 within ms, $2 limit, $3 now or null for the clock
--
-- The clock is the statement's: one that moves while it runs could not be looked up in attempt_ended.
select q.name as queue, j.kind, a.how, count(*) as count
from tenure.attempt a
join tenure.job j on j.id = a.job
join tenure.queue q on q.id = j.queue
where a.ended_at > coalesce($3::timestamptz, statement_timestamp()) - $1::bigint * interval '1 ms'
group by q.name, j.kind, a.how
order by q.name collate "C", j.kind collate "C", a.how
limit $2::bigint
