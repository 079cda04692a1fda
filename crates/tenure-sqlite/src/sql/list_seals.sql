-- list_seals.sql: closed links of the chain, in order.
-- Zero rows means that the head is reached.
select seal.no, seal.first, seal.last, seal.rows, seal.prev, seal.hash, seal.sealed_at
from seal
where seal.no > :after
order by seal.no
limit :limit;
