-- list_troubled: links that import $1 waits for and that do not go on by themselves, at most $2. Zero rows: all go on.
select link.id, link.job, link.url, link.state, link.aside_at
from link_item item join link_canonical link on link.id = item.link
where item.import = $1 and item.outcome is null
  and (link.state in ('reviving', 'doomed') or (link.state = 'open' and link.aside_at is not null))
order by link.id limit $2
