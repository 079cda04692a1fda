-- search_jobs.sql: which of these jobs contain a text in their payload, in the order given, and how many bytes were read.
-- Zero rows: none of them is there any more.
--   $1 jobs, $2 text in lower case, $3 tenant or null
select j.id, coalesce(octet_length(p.text), 0) as bytes, coalesce(strpos(lower(p.text collate "C"), $2::text) > 0, false) as found
from unnest($1::uuid[]) with ordinality u (job, place)
join tenure.job j on j.id = u.job
cross join lateral (select tenure.json_text(j.payload, 1048576) as text offset 0) p
where ($3::text is null or j.tenant = (select id from tenure.tenant where name = $3))
order by u.place
