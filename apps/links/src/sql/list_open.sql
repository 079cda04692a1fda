-- list_open: links that import $1 waits for, from $2 on, at most $3. Zero rows: none behind it.
select link.id, link.job
from link_item item join link_canonical link on link.id = item.link
where item.import = $1 and item.outcome is null and link.state = 'open' and link.id >= $2
order by link.id limit $3
