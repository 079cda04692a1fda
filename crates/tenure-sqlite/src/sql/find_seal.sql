-- find_seal.sql: which journal rows a seal covers.
-- Zero rows means that there is no such seal.
select seal.first, seal.last from seal where seal.no = :no;
