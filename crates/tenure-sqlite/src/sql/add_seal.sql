-- add_seal.sql: close a link of the chain. `prev` is unique: a chain cannot fork.
insert into seal (no, first, last, sealed_at, rows, prev, hash) values (:no, :first, :last, :sealed_at, :rows, :prev, :hash);
