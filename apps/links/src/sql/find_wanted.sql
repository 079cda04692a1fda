-- find_wanted: whether somebody wants link $1: an import that waits for it and was not canceled, or an operator who requeued
-- its job when it was dead. Zero rows: nobody.
select 1 as one
from link_item item join link_import import on import.id = item.import
where item.link = $1 and item.outcome is null and import.canceled_at is null
union all
select 1 from link_canonical where id = $1 and state = 'dead'
limit 1
