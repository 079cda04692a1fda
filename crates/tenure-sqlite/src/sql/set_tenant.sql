-- set_tenant.sql: how many jobs a tenant may have pending in each fair queue; null: as the queue says.
-- Zero rows cannot be: the caller has just found it.
update tenant set quota = :quota where tenant.id = :tenant;
