-- tenant_name.sql: who has this number.
-- Zero rows means that nobody has.
select tenant.name from tenant where tenant.id = :tenant;
