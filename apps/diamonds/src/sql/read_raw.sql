-- read_raw: the next raw stones of a revision, by key. Zero rows: that was all.
select supplier_stone_id, run_id, payload
from diamonds_raw
where as_of = $1 and supplier_stone_id > $2
order by supplier_stone_id
limit $3
