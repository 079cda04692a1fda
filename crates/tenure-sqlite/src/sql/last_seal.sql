-- last_seal.sql: the head of the chain.
-- Zero rows means that nothing was sealed yet.
select seal.no, seal.last, seal.hash from seal order by seal.no desc limit 1;
