-- find_tenant.sql: the number of a tenant.
-- Zero rows means that no job of it was ever stored.
select tenant.id from tenant where tenant.name = :name;
