-- count_items: how far import $1 is. Always one row.
select count(*) as total,
       count(outcome) as processed,
       cast(coalesce(sum(case outcome when 'dead' then 1 else 0 end), 0) as bigint) as failed
from link_item where import = $1
