-- find_last_error: what went wrong last with a link of import $1. Zero rows: nothing has since it came.
select link.last_error
from link_item item
  join link_import import on import.id = item.import
  join link_canonical link on link.id = item.link
where item.import = $1 and link.last_error is not null
  and (item.outcome = 'dead' or link.failed_at >= import.created_at)
order by link.failed_at desc nulls last, link.id limit 1
